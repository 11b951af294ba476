# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of remote devices share: services and programs that carry a mark of the test, and stand-ins for peers.

Waiting is for an event, with a limit; no process outlives its test.
"""
import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import processes

SERVICE = os.environ["DIOMP_TEST_SERVICE"]
LIBRARIES = os.environ["DIOMP_TEST_LIBRARIES"]
EXERCISE = os.environ["DIOMP_TEST_EXERCISE"]
MISUSE = os.environ["DIOMP_TEST_MISUSE"]
EVENTS = os.environ["DIOMP_TEST_EVENTS"]
POSTED = os.environ["DIOMP_TEST_POSTED"]
LATE = [os.environ["DIOMP_TEST_LATE"], str(Path(LIBRARIES, "libomptarget.so"))]
LATE_LIBRARY = os.environ["DIOMP_TEST_LATE_LIBRARY"]
PROCESS = os.environ["DIOMP_TEST_PROCESS"]
RIGHTS = os.environ["DIOMP_TEST_RIGHTS"]
SHARED_MEMORY = os.environ["DIOMP_TEST_SHARED_MEMORY"]
VIRTUALS = os.environ["DIOMP_TEST_VIRTUALS"]
LATER_ENTRIES = os.environ["DIOMP_TEST_LATER_ENTRIES"]
MOVER = [os.environ["DIOMP_TEST_MOVER"], os.environ["DIOMP_TEST_LIBDIOMP"]]
CUDA = os.environ["DIOMP_TEST_CUDA"]
SPACE = os.environ["DIOMP_TEST_SPACE"]
RUN = os.environ["DIOMP_TEST_RUN"]
INFO = str(Path(RUN).with_name("diomp-info"))
CALLS = os.environ["DIOMP_TEST_CALLS"]
LIMIT_S = 100  # beside other programs: the whole exercise takes 4 s of two idle cores, up to 60 s of loaded ones
# Of one side when the other one is gone.
END_LIMIT_S = 8


class service:
    """One diomp-deviced, on a free port unless `port` says which."""

    def __init__(self, case, *options, devices=1, token="a token", memory="512M", port=0, **variables):
        words = [SERVICE, "--port", str(port), "--print-port", "--devices", str(devices), "--memory", memory, *options]
        self.process = case.start(words, {"DIOMP_TOKEN": token, "TMPDIR": case.folder, **variables})
        self.port = int(self.process.stdout.readline())
        self.name = f"127.0.0.1:{self.port}"

    def sessions(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        try:
            return [int(word) for word in Path(path).read_text().split()]
        except OSError:
            return []

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(LIMIT_S)


class remote_case(unittest.TestCase):
    def setUp(self):
        self.mark = processes.new_mark()
        self.started = []
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_LIMIT_S)
            processes.close_pipes(process)
        processes.end_all(self, processes.carrying(*self.mark))

    def start(self, words, variables, **how):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("DIOMP_", "OMP_"))}
        environment.update([self.mark], OMP_NUM_THREADS="2", **variables)
        process = subprocess.Popen(words, env=environment, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        self.started.append(process)
        return process

    def start_client(self, services, words, variables=(), **how):
        """On remote devices alone, unless `variables` say otherwise."""
        return self.start(words, {
            "DIOMP_REMOTE_DEVICES": services if isinstance(services, str) else services.name,
            "DIOMP_TOKEN": "a token", "DIOMP_LOCAL_DEVICES": "off", "LD_LIBRARY_PATH": LIBRARIES, **dict(variables)},
            **how)

    def run_client(self, services, words, variables=()):
        """(status, standard output, standard error)"""
        process = self.start_client(services, words, variables)
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err

    def exercise(self, services, first, count, *cases, **variables):
        status, out, err = self.run_client(services, [EXERCISE, str(first), str(count), *cases], variables)
        self.assertEqual((status, out), (0, "exercise: ok\n"), err)
        self.assertNotIn("error", err)
        return err

    def start_calls_in_regions(self, lender, ranks, **variables):
        """Of ranks that each have one device of the service."""
        program = f'DIOMP_REMOTE_DEVICES="{lender.name}@$DIOMP_RANK*1" exec "$0" together'
        return self.start([RUN, "-n", str(ranks), "--bind-to", "none", "sh", "-c", program, CALLS], {
            "DIOMP_TOKEN": "a token", "DIOMP_LOCAL_DEVICES": "off", "DIOMP_ERRORS": "return", **variables})

    def calls_in_regions(self, lender, ranks, **variables):
        """Returns what the ranks write to standard error."""
        job = self.start_calls_in_regions(lender, ranks, **variables)
        out, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual((job.returncode, out), (0, "device calls on host devices: ok\n"), err)
        return err

    def paths(self, *lenders, **variables):
        """From rank 0 to the memory of two ranks, of which each has the next device of these services."""
        devices = [f"{lender.name}@{i % 2 if len(lenders) == 1 else 0}*1" for i, lender in enumerate((lenders * 2)[:2])]
        program = f'set {" ".join(devices)}; shift $DIOMP_RANK; DIOMP_REMOTE_DEVICES="$1" exec "$0" --topology'
        job = self.start([RUN, "-n", "2", "--bind-to", "none", "sh", "-c", program, INFO], {
            "DIOMP_TOKEN": "a token", "DIOMP_LOCAL_DEVICES": "off", **variables})
        out, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 0, err)
        return "".join(line for line in out.splitlines(True) if line.startswith("  rank 1: "))

    def assert_serves(self, services):
        """That a client finds a device that works."""
        status, out, err = self.run_client(services, [MISUSE, "answer"])
        self.assertEqual(status, 0, err)
        self.assertRegex(out, "in another process, answer 42")

    def wait_until(self, condition, what, limit_s=LIMIT_S):
        deadline = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"waited {limit_s} s for {what}")
            select.select([], [], [], 0.01)

    def session_of(self, client):
        """The number that a region has printed."""
        word, number = client.stdout.readline().split()
        self.assertEqual(word, "session")
        return int(number)

    def assert_gone(self, pid):
        self.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), f"the end of process {pid}", END_LIMIT_S)

    def assert_ends_with_error(self, client, pattern):
        self.last_output, self.last_error = client.communicate(timeout=END_LIMIT_S)
        self.assertNotEqual(client.returncode, 0, self.last_output)
        self.assertNotIn("went on", self.last_output)
        self.assertRegex(self.last_error, pattern)

    def files(self):
        """What services and sessions have left where temporary files go."""
        return os.listdir(self.folder)


class stand_in:
    """Listens as a service does and lets `answer`, called with each connection, say what comes back."""

    def __init__(self, answer, port=0):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", port))
        self.name = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.open.append(connection)
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with contextlib.suppress(OSError):
            self.answer(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in (self.listener, *self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class forwarder(stand_in):
    """Passes bytes on to a service, in pieces of `piece` bytes, until cut() or, of each connection, so many bytes."""

    def __init__(self, port, piece=65536, most_bytes=1 << 62):
        self.port = port
        self.most_bytes = most_bytes
        self.num_bytes = 0  # in both directions
        self.piece = piece
        super().__init__(self.forward)

    def forward(self, connection):
        there = socket.create_connection(("127.0.0.1", self.port))
        self.open.append(there)
        left = [self.most_bytes]
        threading.Thread(target=self.pump, args=(there, connection, left), daemon=True).start()
        self.pump(connection, there, left)

    def pump(self, source, target, left):
        with contextlib.suppress(OSError):
            while chunk := source.recv(self.piece):
                self.num_bytes += len(chunk)
                left[0] -= len(chunk)
                if left[0] < 0:
                    break
                target.sendall(chunk)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def cut(self):
        self.__exit__()
