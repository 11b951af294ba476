#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remote devices that are not there, are used wrongly, or go away."""
import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import time
import unittest
from pathlib import Path

from services import (END_LIMIT_S, LATER_ENTRIES, LIBRARIES, LIMIT_S, MISUSE, POSTED, RUN, SERVICE, SPACE, VIRTUALS,
                      forwarder, remote_case, service, stand_in)

EM_X86_64, EM_AARCH64 = 62, 183
# A rank of a job of one, whose sessions load libdiomp.so.
CLIENT_WITH_RUNTIME = [SPACE]


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def connections_to(port):
    """Of this host's, established: those at the port."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return [words for words in map(str.split, lines)
            if words[3] == "01" and words[1].endswith(f":{port:04X}")]


class remote_faults_test(remote_case):
    # ---- Nothing to connect to

    def check_without_devices(self, services, why, **variables):
        """The program runs at home, after a sentence; where it must not, it ends with an error."""
        status, out, err = self.run_client(services, [MISUSE, "answer"], {"DIOMP_LOCAL_DEVICES": "on", **variables})
        self.assertEqual((status, out), (0, "4 devices, in this process, answer 42\nwent on\n"), err)
        self.assertRegex(err, "diomp: error: no remote devices: .*" + why)
        status, out, err = self.run_client(services, [MISUSE, "answer"], variables)
        self.assertEqual((status, out), (0, "0 devices, in this process, answer 42\nwent on\n"), err)
        client = self.start_client(services, [MISUSE, "answer"], {"OMP_TARGET_OFFLOAD": "MANDATORY", **variables})
        self.assert_ends_with_error(client, why)
        self.assertIn("offloading is mandatory", self.last_error)

    def test_nobody_listens(self):
        self.check_without_devices(closed_port(), "cannot connect to port .*refused")

    def test_one_of_two_services_is_missing(self):
        lender = service(self)
        self.check_without_devices(f"{lender.name},{closed_port()}", "cannot connect to port .*refused")
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions")
        self.assert_serves(lender)

    def test_unknown_host(self):
        self.check_without_devices("no-such-host.invalid", "host 'no-such-host.invalid'")

    def test_nonsense_for_services(self):
        self.check_without_devices("127.0.0.1:0", "the port is not a number")

    def test_no_token(self):
        self.check_without_devices(service(self), "there is no token", DIOMP_TOKEN="")

    def test_wrong_token(self):
        lender = service(self)
        self.check_without_devices(lender, "refuses this process.*same DIOMP_TOKEN", DIOMP_TOKEN="another token")
        self.assertEqual(lender.sessions(), [])
        self.assert_serves(lender)

    def test_more_devices_than_there_are(self):
        lender = service(self)
        self.check_without_devices(f"{lender.name}*2", "there is no such device")

    def test_service_without_token(self):
        process = self.start([SERVICE, "--port", "0"], {})
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, "there is no token.*DIOMP_TOKEN_FILE")

    def test_port_in_use(self):
        lender = service(self)
        process = self.start([SERVICE, "--port", str(lender.port)], {"DIOMP_TOKEN": "a token"})
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, f"port {lender.port} .*in use")

    # ---- Peers that are none

    def test_garbage_instead_of_a_service(self):
        def answer(connection):
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(100))
            connection.recv(1000)
        with stand_in(answer) as other:
            self.check_without_devices(other, "does not prove that it is a device service")

    def test_impostors_do_not_learn_the_token(self):
        """What listens where a service should be gets bytes that do not hold it."""
        seen = []

        def answer(connection):
            seen.append(connection.recv(100000))
            connection.close()
        with stand_in(answer) as other:
            self.check_without_devices(other, "refuses this process, or is another program")
        self.assertGreater(len(seen), 0)
        self.assertEqual({len(each) for each in seen}, {88})
        self.assertNotIn(b"token", b"".join(seen))

    def test_service_that_closes(self):
        with stand_in(lambda connection: connection.close()) as other:
            self.check_without_devices(other, "refuses this process, or is another program")

    def test_service_that_closes_after_the_welcome(self):
        lender = service(self)
        # The client's hello and proof pass, and all of the answer but the end.
        with forwarder(lender.port, most_bytes=88 + 40 + 88 + 10) as between:
            self.check_without_devices(between, "the connection was closed|gone")
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions")

    def test_strangers_hold_nobody_up(self):
        lender = service(self)
        with contextlib.ExitStack() as stack:
            for begin in (b"", b"\x20", b"\x20\0\0\0", os.urandom(87)) * 3:
                stranger = stack.enter_context(socket.create_connection(("127.0.0.1", lender.port)))
                stranger.sendall(begin)
            self.assert_serves(lender)
            noise = stack.enter_context(socket.create_connection(("127.0.0.1", lender.port)))
            noise.sendall(os.urandom(64) * 1000)
            self.assert_serves(lender)

    # ---- Images

    def test_image_of_another_architecture(self):
        program = bytearray(Path(MISUSE).read_bytes())
        at = program.find(b"\x7fELF\x02\x01", 1)
        self.assertEqual(struct.unpack_from("<H", program, at + 18)[0], EM_X86_64)
        struct.pack_into("<H", program, at + 18, EM_AARCH64)
        changed = Path(self.folder, "changed")
        changed.write_bytes(program)
        changed.chmod(0o755)
        lender = service(self)
        status, out, err = self.run_client(lender, [str(changed), "answer"])
        self.assertEqual((status, out), (0, "0 devices, in this process, answer 42\nwent on\n"), err)
        self.assertRegex(err, "remote device 0 .*no image for its architecture.*fopenmp-targets")
        client = self.start_client(lender, [str(changed), "answer"], {"OMP_TARGET_OFFLOAD": "MANDATORY"})
        self.assert_ends_with_error(client, "no image for its architecture")

    # ---- Wrong use

    def test_bad_addresses(self):
        status, out, err = self.run_client(service(self), [MISUSE, "bad_copies"])
        self.assertEqual(status, 0, err)
        for what in ("freed", "freed, large", "past the end", "past the end, small"):
            self.assertIn(f"{what}: 1 1, then 42\n", out)
        # The device knows: LLVM's routine reports no error that comes after the call.
        for what in ("no memory", "no memory, large", "host memory"):
            self.assertRegex(out, f"{what}: . ., then 42\n")
        self.assertEqual(len([line for line in err.splitlines() if "not inside memory allocated there" in line]), 8)
        self.assertEqual(len([line for line in err.splitlines() if "are not memory of the device" in line]), 6)

    def test_free_twice(self):
        lender = service(self)
        self.assert_ends_with_error(self.start_client(lender, [MISUSE, "free_twice"]), "no allocation begins at this")
        self.assert_serves(lender)

    def test_out_of_memory(self):
        lender = service(self, memory="16M")
        client = self.start_client(lender, [MISUSE, "out_of_memory"])
        self.assert_ends_with_error(client, "no space for 64 MiB; .* of 16 MiB are in use")
        self.assertIn("alloc: 0, then 42\n", self.last_output)
        self.assert_serves(lender)

    # ---- Ends

    def check_crash(self, mode, why):
        lender = service(self)
        self.assert_ends_with_error(self.start_client(lender, [MISUSE, mode]),
                                    f"remote device 0 .*{why} while running kernel __omp_offloading_.*crash_")
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions", END_LIMIT_S)
        self.assert_serves(lender)

    def test_region_writes_to_null(self):
        self.check_crash("null", r"died by signal 11 \(Segmentation fault\)")

    def test_region_uses_what_only_the_host_has(self):
        """The error says which address, and what that is in the program."""
        for mode, what in (("host_variable", rf"in \S*{Path(MISUSE).name} of the program's process"),
                           ("host_function", rf"in \S*{Path(MISUSE).name} of the program's process"),
                           ("host_memory", "memory of the program's process here that is not mapped")):
            with self.subTest(mode):
                client = self.start_client(service(self), [MISUSE, mode])
                self.assert_ends_with_error(client, rf"signal 11 .*kernel \S*crash_{mode}\S*, at address 0x[0-9a-f]+ \({what}")

    def test_region_calls_a_virtual_function_of_an_object_of_the_host(self):
        client = self.start_client(service(self), [VIRTUALS, "host"])
        self.assert_ends_with_error(client, rf"signal 11 .*at address 0x[0-9a-f]+ \(in \S*{Path(VIRTUALS).name} of the program")

    def test_region_that_writes_to_null_names_the_address(self):
        self.assert_ends_with_error(self.start_client(service(self), [MISUSE, "null"]), r"at address 0x0\b(?! \()")

    def test_devices_that_are_not_used(self):
        """One line at the end; none where they were used, nor in a child that leaves them to its parent."""
        lender = service(self, devices=2)
        status, out, err = self.run_client(lender, [MISUSE, "nothing"])
        self.assertEqual((status, out), (0, "2 devices\nwent on\n"), err)
        self.assertRegex(err, r"\Adiomp: warning: the program has not used its remote devices \(numbers 0 to 1\): .*\n\Z")
        status, out, err = self.run_client(lender, [MISUSE, "nothing"], {"DIOMP_LOCAL_DEVICES": "on"})
        self.assertEqual((status, out), (0, "6 devices\nwent on\n"), err)
        self.assertRegex(err, r"\(numbers 4 to 5\).*DIOMP_LOCAL_DEVICES=off")
        self.assertEqual(self.run_client(lender, [MISUSE, "answer"])[2], "")

    def test_program_of_a_later_compiler(self):
        """Entries as LLVM 22 has them: a sentence and not a crash."""
        if not Path(LIBRARIES, "libomptarget.so.19.1").exists():
            self.skipTest("this build has no libomptarget of LLVM 19")
        status, out, err = self.run_client("", [LATER_ENTRIES, str(Path(LIBRARIES, "libomptarget.so.19.1"))])
        self.assertEqual((status, out), (1, ""), err)
        self.assertRegex(err, r"\Adiomp: error: target regions of this program were compiled by LLVM 21 or newer, and "
                              r"DiOMP's libomptarget is that of LLVM 19 \[remedy: compile with diompcc or clang-19.*\n\Z")

    def test_region_aborts(self):
        self.check_crash("abort", r"died by signal 6 \(Aborted\)")

    def test_region_aborts_in_a_thread(self):
        self.check_crash("parallel", r"died by signal 6 \(Aborted\)")

    def test_region_is_killed(self):
        self.check_crash("kill", r"died by signal 9 \(Killed\)")

    def test_region_exits_with_an_error(self):
        self.check_crash("exit3", "ended with status 3")

    def test_region_exits(self):
        """Output may be on its way to the client just then, so often."""
        for _ in range(20):
            self.check_crash("exit0", "ended with status 0")

    def test_a_posted_region_crashes(self):
        """OpenMP takes it for done. Nothing follows it in the program."""
        lender = service(self)
        client = self.start_client(lender, [POSTED, "crash", "0", "1"])
        out, err = client.communicate(timeout=LIMIT_S)
        self.assertEqual((client.returncode, out), (1, "went on\n"), err)
        self.assertRegex(err, r"diomp: error: .*remote device 0.*signal 11.*kernel \S*post")
        self.assert_serves(lender)
        client = self.start_client(lender, [POSTED, "crash", "0", "1"], {"DIOMP_POSTED_REGIONS": "off"})
        self.assert_ends_with_error(client, r"signal 11.*kernel \S*post")

    def test_copies_after_the_loss_of_a_device_fail(self):
        client = self.start_client(service(self), [MISUSE, "loss"])
        self.assert_ends_with_error(client, r"died by signal 9 \(Killed\)")
        self.assertEqual(self.last_output, "copies fail\n")

    def test_connections_of_others_are_not_inherited(self):
        """Two clients that connect at the same moment: each connection ends with its own session."""
        lender = service(self)
        lender.process.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{lender.process.pid}/status")
        self.wait_until(lambda: "State:\tT" in status.read_text(), "the service to stop")
        clients = [self.start_client(lender, [MISUSE, "busy"]) for _ in range(2)]
        self.wait_until(lambda: len(connections_to(lender.port)) == 2, "two connections")
        lender.process.send_signal(signal.SIGCONT)
        sessions = [self.session_of(client) for client in clients]
        os.kill(sessions[0], signal.SIGKILL)
        self.assert_ends_with_error(clients[0], r"died by signal 9 \(Killed\)")
        self.assertIsNone(clients[1].poll())
        clients[1].kill()
        self.assert_gone(sessions[1])

    def test_a_crash_harms_no_other_client(self):
        lender = service(self, devices=2)
        client = self.start_client(lender, [MISUSE, "busy"])
        session = self.session_of(client)
        self.assert_ends_with_error(self.start_client(lender, [MISUSE, "abort"]), "signal 6")
        self.assertIsNone(client.poll())
        self.assertTrue(os.path.exists(f"/proc/{session}"))
        client.kill()
        self.assert_gone(session)

    def check_client_end(self, mode, how):
        lender = service(self)
        client = self.start_client(lender, [MISUSE, mode])
        session = self.session_of(client)
        self.assertEqual(lender.sessions(), [session])
        client.send_signal(how)
        client.wait(END_LIMIT_S)
        self.assert_gone(session)
        self.assert_serves(lender)
        self.assertEqual(lender.end(), 0)
        self.assertEqual(self.files(), [])

    def test_client_is_killed_in_a_region(self):
        self.check_client_end("endless", signal.SIGKILL)

    def test_client_is_killed_between_regions(self):
        self.check_client_end("busy", signal.SIGKILL)

    def test_client_is_terminated(self):
        self.check_client_end("endless", signal.SIGTERM)

    def test_a_stopped_session_does_not_outlive_its_client(self):
        lender = service(self, "--max-sessions", "1")
        client = self.start_client(lender, [MISUSE, "busy"])
        session = self.session_of(client)
        os.kill(session, signal.SIGSTOP)
        client.kill()
        client.wait(END_LIMIT_S)
        self.assert_gone(session)
        self.assert_serves(lender)
        self.assertEqual(lender.end(), 0)

    def test_clients_are_killed_while_their_sessions_start(self):
        """Sessions whose start fails end by themselves: not by a signal."""
        lender = service(self, devices=2, DIOMP_LOG="info")
        begin = time.monotonic()
        client = self.start_client(lender, CLIENT_WITH_RUNTIME)
        client.communicate(timeout=LIMIT_S)
        whole_s = time.monotonic() - begin
        for i in range(40):
            client = self.start_client(lender, CLIENT_WITH_RUNTIME)
            time.sleep(whole_s * i / 40)
            client.kill()
            client.wait(END_LIMIT_S)
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions")
        self.assertEqual(lender.end(), 0)
        self.assertNotRegex(lender.process.stderr.read(), "signal|Segmentation")

    def test_pid_namespace_with_the_outer_proc(self):
        """There /proc has other numbers of processes."""
        inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
        tried = subprocess.run([*inside, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest(f"no namespaces here: {tried.stderr.strip()}")
        job = self.start([*inside, RUN, "--remote-devices", "localhost:2", "--", MISUSE, "answer"],
                         {"DIOMP_LOCAL_DEVICES": "off", "LD_LIBRARY_PATH": LIBRARIES})
        out, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual((job.returncode, err), (0, ""))
        self.assertIn("2 devices, in another process, answer 42", out)

    def check_service_end(self, mode, how):
        lender = service(self)
        client = self.start_client(lender, [MISUSE, mode])
        session = self.session_of(client)
        lender.end(how)
        self.assertEqual(self.files(), [], "nothing is left, however it ends")
        self.assert_gone(session)
        self.assert_ends_with_error(client, "remote device 0 .*(gone|over|unreachable|fail)")
        return lender

    def test_service_is_killed_in_a_region(self):
        self.check_service_end("endless", signal.SIGKILL)

    def test_service_is_killed_between_regions(self):
        self.check_service_end("busy", signal.SIGKILL)

    def test_service_is_terminated(self):
        self.assertEqual(self.check_service_end("endless", signal.SIGTERM).process.returncode, 0)
        self.assertEqual(self.files(), [])

    def test_service_ends_with_its_parent(self):
        words = f'"{SERVICE}" --port 0 --print-port --end-with-parent & echo $!; wait'
        parent = self.start(["sh", "-c", words], {"DIOMP_TOKEN": "a token", "TMPDIR": self.folder})
        lines = sorted([int(parent.stdout.readline()), int(parent.stdout.readline())])
        lender = next(pid for pid in lines if Path(f"/proc/{pid}/comm").exists() and
                      Path(f"/proc/{pid}/comm").read_text().startswith("diomp-deviced"))
        parent.kill()
        self.assert_gone(lender)

    def check_cut(self, mode):
        lender = service(self)
        with forwarder(lender.port) as between:
            client = self.start_client(between, [MISUSE, mode])
            session = self.session_of(client)
            between.cut()
            self.assert_gone(session)
            self.assert_ends_with_error(client, "remote device 0 .*(gone|over)")
        self.assert_serves(lender)

    def test_control_connection_is_cut_in_a_region(self):
        self.check_cut("endless")

    def test_control_connection_is_cut_between_regions(self):
        self.check_cut("busy")

    def test_session_is_stopped_and_goes_on(self):
        """Silence alone is no end: a host may be slow."""
        lender = service(self)
        client = self.start_client(lender, [MISUSE, "busy"])
        session = self.session_of(client)
        os.kill(session, signal.SIGSTOP)
        with self.assertRaises(subprocess.TimeoutExpired):
            client.wait(1)
        os.kill(session, signal.SIGCONT)
        with self.assertRaises(subprocess.TimeoutExpired):
            client.wait(0.2)
        client.kill()
        self.assert_gone(session)

    def test_session_is_stopped_before_the_first_region(self):
        """DIOMP_TIMEOUT holds while an image is loaded, too, although that may take any time."""
        lender = service(self)
        client = self.start_client(lender, [MISUSE, "late"], {"DIOMP_TIMEOUT": "3"})
        self.assertEqual(client.stdout.readline(), "1 devices\n")
        for session in lender.sessions():
            os.kill(session, signal.SIGSTOP)
        _, err = client.communicate(timeout=LIMIT_S)
        self.assertEqual(client.returncode, -signal.SIGABRT, err)
        self.assertRegex(err, r"remote device 0 \(cpu on 127\.0\.0\.1:\d+\).* has not answered for 3 s")

    def test_a_session_that_is_stopped_while_it_starts(self):
        """The limit is DIOMP_TIMEOUT, at least 10 s. A session that was faster than this test goes on: once more."""
        lender = service(self)
        for _ in range(10):
            client = self.start_client(lender, [MISUSE, "answer"], {"DIOMP_TIMEOUT": "2"})
            self.wait_until(lambda: lender.sessions() or client.poll() is not None, "a session")
            for session in lender.sessions():
                os.kill(session, signal.SIGSTOP)
            begin = time.monotonic()
            _, err = client.communicate(timeout=LIMIT_S)
            if "no answer within" in err:
                break
        self.assertRegex(err, r"remote device 0 \(cpu on 127\.0\.0\.1:\d+\): no answer within 10 s")
        self.assertLess(time.monotonic() - begin, 10 + END_LIMIT_S)


if __name__ == "__main__":
    unittest.main()
