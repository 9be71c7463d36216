# SPDX-License-Identifier: Apache-2.0
"""Messages of proto/control.proto, encoded and decoded without headrace: message(), parse()."""

import os
import re
import socket

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "proto", "control.proto")


def _schema():
    """{message: {field: (number, type)}}"""
    schema, fields = {}, {}
    with open(PROTO, encoding="utf-8") as f:
        for line in f:
            if match := re.match(r"message (\w+) \{", line):
                fields = schema.setdefault(match[1], {})
            elif match := re.match(r"\s+(?:repeated )?(\w+) (\w+) = (\d+);", line):
                fields[match[2]] = (int(match[3]), match[1])
    return schema


SCHEMA = _schema()


def _varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def message(kind, **values):
    """The packet of a Control message: message("get_live", job="7")."""
    number, body = SCHEMA["Control"][kind]
    return _field(number, b"".join(_field(SCHEMA[body][name][0], value) for name, value in values.items()))


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _read_fields(data, name):
    at, values = 0, {}
    names = {number: (field, kind) for field, (number, kind) in SCHEMA[name].items()}
    while at < len(data):
        tag, at = _read_varint(data, at)
        field, kind = names[tag >> 3]
        if tag & 7 == 0:
            values[field], at = _read_varint(data, at)
        elif tag & 7 == 1:
            values[field], at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            length, at = _read_varint(data, at)
            part, at = data[at:at + length], at + length
            values[field] = part.decode() if kind == "string" else _read_fields(part, kind)
    return values


def parse(packet):
    """(kind, fields that are not 0 or empty) of a Control message."""
    [(kind, fields)] = _read_fields(packet, "Control").items()
    return kind, fields


def ask(path, kind, **values):
    """Sends a request, yields each answer until `done` or `error`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(300)
        s.connect(path)
        s.send(message(kind, **values))
        answer = None
        while answer not in ("done", "error"):
            answer, fields = parse(s.recv(1 << 16))
            yield answer, fields
