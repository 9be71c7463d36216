# SPDX-License-Identifier: Apache-2.0
"""Hosts of a small cluster on one machine: a network namespace each, behind a bridge of their own.

Traffic stays between these namespaces. Links can be cut, be made slow (tc: netem where the kernel has it, else a token
bucket with a short queue, which delays and drops too), and be healed.
"""

import os
import subprocess


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


def why_not():
    """Why this machine cannot have such hosts; None when it can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    try:
        run("ip", "netns", "add", f"hrt{os.getpid()}")
        run("ip", "netns", "del", f"hrt{os.getpid()}")
    except FileNotFoundError:
        return "needs ip(8), of iproute2"
    except subprocess.CalledProcessError as e:
        return f"no network namespaces here: {e.stderr.strip()}"
    return None


class Network:
    """`hub` holds the bridge (and the collectors), nodes are 1..n."""

    def __init__(self, n, number):
        self.tag = f"hr{os.getpid()}-{number}"
        self.n = n
        self.hub = f"{self.tag}h"
        self.address = "10.213.0.254"
        run("ip", "netns", "add", self.hub)
        hub = ("ip", "-n", self.hub)
        run(*hub, "link", "set", "lo", "up")
        # Of its own it would have the lowest address of its ports, another one whenever a link is cut, and all would lose it.
        run(*hub, "link", "add", "br0", "address", "02:00:0a:d5:00:fe", "type", "bridge")
        run(*hub, "addr", "add", f"{self.address}/24", "dev", "br0")
        run(*hub, "link", "set", "br0", "up")
        for i in range(1, n + 1):
            self.add_node(i)
        self.netem = run(*self.tc(1, "replace"), "netem", "delay", "1ms", check=False).returncode == 0
        run(*self.tc(1, "del"), check=False)

    def node(self, i):
        return f"{self.tag}n{i}"

    def add_node(self, i):
        run("ip", "netns", "add", self.node(i))
        run("ip", "link", "add", "eth0", "netns", self.node(i), "type", "veth", "peer", "name", f"to{i}", "netns", self.hub)
        run("ip", "-n", self.hub, "link", "set", f"to{i}", "master", "br0", "up")
        run("ip", "-n", self.node(i), "link", "set", "lo", "up")
        run("ip", "-n", self.node(i), "addr", "add", f"10.213.0.{i}/24", "dev", "eth0")
        run("ip", "-n", self.node(i), "link", "set", "eth0", "up")

    def within(self, name):
        return ["ip", "netns", "exec", name]

    def tc(self, i, verb):
        return ["ip", "netns", "exec", self.node(i), "tc", "qdisc", verb, "dev", "eth0", "root"]

    def cut(self, i):
        """No packet passes, and nobody is told: as a switch that died."""
        run("ip", "-n", self.hub, "link", "set", f"to{i}", "nomaster")

    def join(self, i):
        run("ip", "-n", self.hub, "link", "set", f"to{i}", "master", "br0", "up")

    def slow(self, i, kbit, delay_ms):
        if self.netem:
            run(*self.tc(i, "replace"), "netem", "rate", f"{kbit}kbit", "delay", f"{delay_ms}ms", f"{delay_ms // 3}ms",
                "loss", "1%")
        else:
            run(*self.tc(i, "replace"), "tbf", "rate", f"{kbit}kbit", "burst", "8kb", "latency", f"{delay_ms}ms")

    def heal(self, i):
        self.join(i)
        run(*self.tc(i, "del"), check=False)

    def close(self):
        for i in range(1, self.n + 1):
            run("ip", "netns", "del", self.node(i), check=False)
        run("ip", "netns", "del", self.hub, check=False)
