# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A remote shell between test hosts, like ssh where it matters.

It speaks TCP over the hosts' network, so a link that is down cuts it. The command is joined with blanks and given to
the shell of the host, with a plain environment. It is a child of the host, not of whoever asked: when the client dies,
the command sees the end of its standard input and closed pipes, and no signal.

A frame is a kind (one byte), a length (four) and so many bytes.
"""
import os
import selectors
import socket
import struct
import subprocess
import sys

PORT = 514
CHUNK_BYTES = 1 << 16
HEADER = struct.Struct("!cI")
STDIN, STDOUT, STDERR, STATUS, COMMAND = b"0", b"1", b"2", b"x", b"c"
# What ssh's client exits with when it is not the command's status.
LOST = 255
# Options of ssh that take a word.
OPTIONS_WITH_WORD = set("bceiklmopBDEFIJLOQRSWw")


def send(stream, kind, payload=b""):
    stream.sendall(HEADER.pack(kind, len(payload)) + payload)


class reader:
    """Frames from a socket."""

    def __init__(self, stream):
        self.stream = stream
        self.held = b""

    def frames(self):
        """Reads once; yields what is complete, then None if the other side has ended."""
        try:
            data = self.stream.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        self.held += data
        yield from self.complete()
        if not data:
            yield None

    def complete(self):
        """What has been read already."""
        while len(self.held) >= HEADER.size:
            kind, size = HEADER.unpack_from(self.held)
            if len(self.held) < HEADER.size + size:
                break
            payload, self.held = self.held[HEADER.size:HEADER.size + size], self.held[HEADER.size + size:]
            yield kind, payload


# ---- The host's side, in a process of its own inside the host


def environment(base):
    """What a command starts with, as after a login."""
    kept = ("PATH", "HOME", "USER", "LOGNAME", "LANG")
    plain = {name: value for name, value in base.items() if name in kept or name.startswith("DIOMP_TEST_")}
    return {"SHELL": "/bin/sh", "TMPDIR": "/dev/shm", **plain}


def first_frame(incoming):
    while True:
        for frame in incoming.frames():
            return frame


class session:
    def __init__(self, connection, command, base):
        self.connection = connection
        home = base.get("HOME", "/")
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", command], env=environment(base), cwd=home if os.path.isdir(home) else "/",
            start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.selector = selectors.DefaultSelector()
        self.selector.register(connection, selectors.EVENT_READ, None)
        self.outputs = {self.process.stdout: STDOUT, self.process.stderr: STDERR}
        for pipe in self.outputs:
            self.selector.register(pipe, selectors.EVENT_READ, None)

    def run(self, incoming):
        for frame in incoming.complete():  # came together with the command
            self.input(frame)
        # As with sshd, the session ends when the last holder of the pipes has closed them.
        while self.outputs:
            for key, _ in self.selector.select():
                if key.fileobj is self.connection:
                    for frame in incoming.frames():
                        self.input(frame)
                else:
                    self.output(key.fileobj)
        status = self.process.wait()
        self.reply(STATUS, str(status if status >= 0 else 128 - status).encode())

    def input(self, frame):
        if frame is None:
            self.selector.unregister(self.connection)
        if frame is None or frame == (STDIN, b""):
            try:
                self.process.stdin.close()
            except OSError:
                pass
        elif frame[0] == STDIN and not self.process.stdin.closed:
            try:
                self.process.stdin.write(frame[1])
                self.process.stdin.flush()
            except OSError:
                pass  # the command reads no more

    def output(self, pipe):
        data = os.read(pipe.fileno(), CHUNK_BYTES)
        kind = self.outputs[pipe]
        if not data or not self.reply(kind, data):
            self.selector.unregister(pipe)
            del self.outputs[pipe]
            pipe.close()

    def reply(self, kind, payload):
        try:
            send(self.connection, kind, payload)
            return True
        except OSError:
            return False


def serve(connection, base):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    incoming = reader(connection)
    frame = first_frame(incoming)
    if frame is not None and frame[0] == COMMAND:
        session(connection, frame[1].decode(), base).run(incoming)


# ---- The client's side


def parse(words):
    """(host, command line) of `rsh [options of ssh] HOST command...`"""
    words = list(words)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if len(option) == 2 and option[1] in OPTIONS_WITH_WORD and words:
            words.pop(0)
    if len(words) < 2:
        raise SystemExit("rsh: needs a host and a command")
    return words[0].split("@")[-1], " ".join(words[1:])


def connect(host):
    """As ssh: the network decides how long that takes."""
    try:
        stream = socket.create_connection((host, PORT))
    except OSError as error:
        print(f"rsh: connect to host {host} port {PORT}: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(LOST) from error
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def client(words):
    host, command = parse(words)
    stream = connect(host)
    send(stream, COMMAND, command.encode())
    incoming = reader(stream)
    selector = selectors.SelectSelector()  # takes files as well
    selector.register(stream, selectors.EVENT_READ)
    try:
        selector.register(0, selectors.EVENT_READ)
    except (OSError, ValueError):
        send(stream, STDIN)  # no standard input at all
    while True:
        for key, _ in selector.select():
            if key.fd == 0:
                data = os.read(0, CHUNK_BYTES)
                if not data:
                    selector.unregister(0)
                try:
                    send(stream, STDIN, data)
                except OSError:
                    pass  # its end is found by reading
                continue
            for frame in incoming.frames():
                if frame is None:
                    print(f"rsh: connection to {host} lost", file=sys.stderr)
                    return LOST
                if frame[0] == STATUS:
                    return int(frame[1])
                write_all(1 if frame[0] == STDOUT else 2, frame[1])


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]
