# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process 1 of a run: makes the hosts, runs the command on the first, serves remote shells and faults, ends it all."""
import json
import os
import selectors
import signal
import socket
import subprocess
import time

from testhosts import machines, remote_shell
from testhosts import namespaces as ns

SKIPPED = 77
# What the command gets between the signal to end and the end.
GRACE_S = 2.0
# Of a request and of an answer, which are one packet each.
MESSAGE_BYTES = 1 << 17
RSH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "rsh")


class switch:
    def __init__(self, count, command, lifeline):
        self.command = command
        self.hosts = machines.make_all(count)
        self.environment = {
            **os.environ, "TMPDIR": "/dev/shm", "DIOMP_TEST_RSH": RSH,
            "DIOMP_TEST_HOSTS": ",".join(each.name for each in self.hosts)}
        self.selector = selectors.DefaultSelector()
        self.selector.register(lifeline, selectors.EVENT_READ, self.end)
        self.watch_signals()
        for each in self.hosts:
            shell, control = each.sockets()
            self.selector.register(shell, selectors.EVENT_READ, lambda s, h=each: self.accept_shell(s, h))
            self.selector.register(control, selectors.EVENT_READ, self.accept_control)
        self.main = None
        self.status = None
        self.deadline = None

    def watch_signals(self):
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        signal.set_wakeup_fd(writing.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well
        self.selector.register(reading, selectors.EVENT_READ, lambda s: s.recv(4096))
        self.wakeup = writing

    def run(self):
        """The command's status."""
        self.main = machines.forked(self.run_command)
        while self.status is None:
            left = None if self.deadline is None else self.deadline - time.monotonic()
            if left is not None and left <= 0:
                return 128 + signal.SIGTERM
            for key, _ in self.selector.select(left):
                key.data(key.fileobj)
            self.bury()
        return self.status

    def bury(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.status = os.waitstatus_to_exitcode(status)
                if self.status < 0:
                    self.status = 128 - self.status

    def end(self, *_):
        """Whoever started the run wants it to end, or is gone."""
        if self.deadline is None:
            self.deadline = time.monotonic() + GRACE_S
            if self.main:
                os.kill(self.main, signal.SIGTERM)

    # ---- In processes of their own

    def in_child(self, place):
        """Leaves the switch's affairs and enters a host."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        directory = os.getcwd()
        place.enter()
        os.chdir(directory)

    def run_command(self):
        self.in_child(self.hosts[0])
        came = []
        signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
        try:
            process = subprocess.Popen(self.command, env=self.environment)
        except OSError as error:
            os.write(2, f"test-hosts: {self.command[0]}: {error.strerror}\n".encode())
            return 127
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
        for number in came:  # before there was a process to pass it on to
            process.send_signal(number)
        status = process.wait()
        return status if status >= 0 else 128 - status

    def accept_shell(self, listener, place):
        connection, _ = listener.accept()

        def serve():
            self.in_child(place)
            remote_shell.serve(connection, self.environment)
        machines.forked(serve)
        connection.close()

    # ---- Faults

    def accept_control(self, listener):
        connection, _ = listener.accept()
        with connection:
            try:
                request = json.loads(connection.recv(MESSAGE_BYTES))
                place = self.find(request["host"])
                if request["what"] == "console":
                    machines.forked(lambda: reply(connection, done=self.console(place, request["command"])))
                    return
                reply(connection, done=fault(place, request))
            except (machines.unavailable, LookupError, OSError, ValueError) as error:
                reply(connection, error=str(error))

    def find(self, name):
        for place in self.hosts:
            if place.name == name:
                return place
        raise LookupError(f"no host {name} among {', '.join(each.name for each in self.hosts)}")

    def console(self, place, command):
        """In a process of its own: the network may be down, this comes another way."""
        self.in_child(place)
        done = subprocess.run(["/bin/sh", "-c", command], env=remote_shell.environment(self.environment), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return {"status": done.returncode, "output": done.stdout[-MESSAGE_BYTES // 4:]}


def fault(place, request):
    if request["what"] == "netem":
        return place.netem(float(request["loss"]), float(request["delay"]), float(request["rate"]))
    {"link": place.link, "cable": place.cable}[request["what"]](request["state"])
    return request["state"]


def reply(connection, **answer):
    try:
        connection.send(json.dumps(answer).encode())
    except OSError:
        pass  # gone meanwhile


# ---- The outer process


def separate():
    """New namespaces for the caller's children; as root if possible, else through a user namespace."""
    wanted = ns.NEW_MOUNT | ns.NEW_NET | ns.NEW_PID
    try:
        try:
            ns.unshare(wanted)
        except PermissionError:
            ns.become_root_of_new_user_namespace(wanted)
    except OSError as error:
        raise machines.unavailable(
            f"this needs CAP_SYS_ADMIN or unprivileged user namespaces: {error.strerror}") from error


def run(count, command):
    """The status of `command` on the first of `count` hosts."""
    separate()
    lifeline, held = os.pipe()

    def inside():
        os.close(held)
        ns.die_with_parent(signal.SIGKILL)
        try:
            hosts = switch(count, command, lifeline)
        except (machines.unavailable, OSError) as error:
            os.write(2, f"test-hosts: skipped: {error}\n".encode())
            return SKIPPED
        return hosts.run()
    pid = machines.forked(inside)
    os.close(lifeline)

    def pass_on(*_):
        os.kill(pid, signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def ask(**request):
    """From a command within a run: what the switch did, as a word."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stream:
        try:
            stream.connect(machines.CONTROL_ADDRESS)
        except OSError as error:
            raise machines.unavailable("not within a run of test-hosts.py") from error
        stream.send(json.dumps(request).encode())
        answer = json.loads(stream.recv(MESSAGE_BYTES) or b'{"error": "the switch has ended"}')
    if "error" in answer:
        raise machines.unavailable(answer["error"])
    return answer["done"]
