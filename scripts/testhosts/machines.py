# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hosts out of namespaces, and the switch that joins them.

Who is who: `outer` (the process that the user started) waits; its child `switch` is process 1 of a PID namespace and
sits in the network namespace of the bridge; each host has namespaces of its own for network, host name, mounts, System
V IPC and processes, held by that host's process 1. When the switch dies, for whatever reason, the kernel kills all in
it and drops the namespaces with everything in them.
"""
import os
import re
import signal
import socket
import subprocess

from testhosts import namespaces as ns
from testhosts import remote_shell, wire

NETWORK = "10.77.0"
MTU = 1500
# In the network namespace of each host, hence the same name everywhere.
CONTROL_ADDRESS = "\0diomp-test-hosts"
INTERFACE = "eth0"


class unavailable(Exception):
    """This machine does not allow test hosts; says why."""


def ip(*words):
    tool("ip", *words)


def tool(name, *words):
    done = subprocess.run([name, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise unavailable(f"`{name} {' '.join(words)}` failed: {(done.stderr or done.stdout).strip()}")


def forked(function):
    """The process number of a child that runs `function` and nothing else."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = function() or 0
        except BaseException as error:  # whatever it is, the child must not go on as its parent
            os.write(2, f"test-hosts: {error}\n".encode())
        finally:
            os._exit(status)
    return pid


def suffix(index):
    """a, ..., z, aa, ..."""
    rest, last = divmod(index, 26)
    return (suffix(rest - 1) if rest else "") + chr(ord("a") + last)


class host:
    def __init__(self, index, token):
        self.index = index
        # Names differ from run to run: programs make files in /tmp that are named after the host.
        self.name = f"host{suffix(index)}-{token}"
        self.address = f"{NETWORK}.{index + 1}"
        self.port = f"port{index + 1}"
        self.wire = None
        self.namespaces = None

    def start(self, hosts):
        """Makes its namespaces and its process 1."""
        reading, writing = os.pipe()
        middle = forked(lambda: self.make(hosts, writing))
        os.close(writing)
        with os.fdopen(reading) as pipe:
            words = pipe.read().split(" ", 1)
        os.waitpid(middle, 0)
        if words[0] == "failed" or not words[0]:
            raise unavailable(f"host {self.name}: {words[1] if len(words) > 1 else 'its process died'}")
        self.namespaces = ns.open_namespaces(int(words[0]))
        ip("link", "add", self.port, "mtu", str(MTU), "type", "veth",
           "peer", "name", INTERFACE, "mtu", str(MTU), "netns", words[0])
        ip("link", "set", self.port, "master", "bridge", "up")
        self.call("ip", "addr", "add", f"{self.address}/24", "dev", INTERFACE)
        self.call("ip", "link", "set", INTERFACE, "up")

    def make(self, hosts, writing):
        ns.unshare(ns.NEW_MOUNT | ns.NEW_UTS | ns.NEW_IPC | ns.NEW_NET | ns.NEW_PID)
        ready_reading, ready_writing = os.pipe()
        first = forked(lambda: self.live(hosts, ready_writing))
        os.close(ready_writing)
        with os.fdopen(ready_reading) as pipe:
            said = pipe.read()
        os.write(writing, str(first).encode() if said == "ready" else f"failed {said}".encode())

    def live(self, hosts, writing):
        """Process 1 of the host. Ignoring the signal of children makes the kernel bury the orphans."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            self.furnish(hosts)
        except (OSError, unavailable) as error:
            os.write(writing, str(error).encode())
            return 1
        os.write(writing, b"ready")
        os.closerange(0, 256)
        while True:
            signal.pause()

    def furnish(self, hosts):
        socket.sethostname(self.name)
        ns.mount("proc", "/proc", "proc", ns.MS_NOSUID | ns.MS_NODEV | ns.MS_NOEXEC)
        # Libraries look for interfaces in /sys/class/net.
        ns.mount("sysfs", "/sys", "sysfs", ns.MS_NOSUID | ns.MS_NODEV | ns.MS_NOEXEC)
        ns.mount("tmpfs", "/dev/shm", "tmpfs", ns.MS_NOSUID | ns.MS_NODEV, "mode=1777")
        names = "127.0.0.1 localhost\n" + "".join(f"{each.address} {each.name}\n" for each in hosts)
        replace("/etc/hosts", names)
        if os.path.exists("/etc/nsswitch.conf"):
            with open("/etc/nsswitch.conf") as file:
                replace("/etc/nsswitch.conf", re.sub(r"(?m)^hosts:.*$", "hosts: files", file.read()))
        ip("link", "set", "lo", "up")

    def enter(self):
        """For a process of its own: from here on its children are processes of the host."""
        for fd in self.namespaces:
            ns.setns(fd)

    def call(self, name, *words):
        """A tool in the host's network. The mount namespace stays that of the switch."""
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            ns.setns(self.namespaces[ns.HOST_KINDS.index("net")])
            tool(name, *words)
        finally:
            ns.setns(here)
            os.close(here)

    def sockets(self):
        """(remote shell, control): listening sockets in the host's network"""
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            ns.setns(self.namespaces[ns.HOST_KINDS.index("net")])
            shell = socket.create_server((self.address, remote_shell.PORT), backlog=64)
            control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            control.bind(CONTROL_ADDRESS)
            control.listen(16)
            return shell, control
        finally:
            ns.setns(here)
            os.close(here)

    # ---- Faults

    def link(self, state):
        self.call("ip", "link", "set", INTERFACE, state)

    def cable(self, state):
        ip("link", "set", self.port, "up" if state == "in" else "down")

    def netem(self, loss_percent, delay_ms, rate=0):
        """Loss and delay for what leaves the host, and bytes per second in each direction (0: unlimited). All 0: a good
        wire. Returns how it is done."""
        self.plain_wire()
        if not loss_percent and not delay_ms and not rate:
            return "none"
        try:
            if rate:  # tc limits what leaves only
                raise unavailable
            self.call("tc", "qdisc", "replace", "dev", INTERFACE, "root", "netem", "limit", "100000",
                      "loss", f"{loss_percent}%", "delay", f"{delay_ms}ms")
            return "tc netem"
        except (unavailable, FileNotFoundError):
            self.relayed_wire(loss_percent, delay_ms, rate)
            return "relay"

    def plain_wire(self):
        try:
            self.call("tc", "qdisc", "del", "dev", INTERFACE, "root")
        except (unavailable, FileNotFoundError):
            pass  # there was none
        if self.wire:
            os.kill(self.wire, signal.SIGKILL)
            os.waitpid(self.wire, 0)
            self.wire = None
            ip("link", "del", self.port + "in")
            ip("link", "set", self.port, "master", "bridge")

    def relayed_wire(self, loss_percent, delay_ms, rate):
        ends = self.port + "in", self.port + "out"
        ip("link", "set", self.port, "nomaster")
        ip("link", "add", ends[0], "mtu", str(MTU), "type", "veth", "peer", "name", ends[1], "mtu", str(MTU))
        ip("link", "set", ends[0], "up")
        ip("link", "set", ends[1], "master", "bridge", "up")
        reading, writing = os.pipe()
        self.wire = forked(lambda: wire.relay(self.port, ends[0], loss_percent, delay_ms, rate,
                                              lambda: os.write(writing, b"1")))
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            if pipe.read(1) != b"1":
                raise unavailable("neither `tc netem` nor packet sockets")


def replace(path, text):
    """A file of the host's own in the place of the machine's: it lives in the host's tmpfs, without a name there."""
    source = "/dev/shm/replacement"
    with open(source, "w") as file:
        file.write(text)
    ns.mount(source, path, flags=ns.MS_BIND)
    os.unlink(source)


def make_all(count):
    """Called in the switch. [host]"""
    ns.mount("none", "/", flags=ns.MS_REC | ns.MS_PRIVATE)
    ns.mount("proc", "/proc", "proc", ns.MS_NOSUID | ns.MS_NODEV | ns.MS_NOEXEC)
    ip("link", "add", "bridge", "mtu", str(MTU), "type", "bridge", "forward_delay", "0", "stp_state", "0")
    ip("link", "set", "bridge", "up")
    token = os.urandom(2).hex()
    hosts = [host(index, token) for index in range(count)]
    for each in hosts:
        each.start(hosts)
    return hosts
