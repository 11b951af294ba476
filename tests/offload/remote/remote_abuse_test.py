#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that ask remote devices for what they have not, and ends in the middle of much that is under way."""
import contextlib
import random
import signal
import socket
import unittest

from services import END_LIMIT_S, LIMIT_S, MISUSE, remote_case, service

UCX = {"DIOMP_NETWORK": "ucx"}


class remote_abuse_test(remote_case):
    def lend(self, devices=2, **variables):
        return service(self, devices=devices, **variables)

    def lend_gpus(self):
        """LLVM's host devices in the place of two GPUs whose memory the network reaches."""
        return f"{self.lend('host', DIOMP_NETWORK_DEVICE_MEMORY='on').name}*2"

    # ---- Addresses, numbers, sizes

    def check_copies(self, services, **variables):
        status, out, err = self.run_client(services, [MISUSE, "bad_copies_between"], variables)
        self.assertEqual(status, 0, err)
        for what in ("past the end here", "past the end there", "far past the end", "freed here", "freed there",
                     "within, past the end"):
            self.assertIn(f"{what}: 1, then 42\n", out)
        self.assertIn("right: 0\n", out)
        # Of the copy, and of LLVM's second try by way of the host.
        for device, count in (0, 7), (1, 5):
            self.assertEqual(err.count(f"remote device {device} "), count, err)
        self.assertEqual(err.count("are not inside memory allocated there"), 12, err)

    def test_copies_between_bad_addresses(self):
        self.check_copies(self.lend())

    def test_copies_between_bad_addresses_of_gpus(self):
        """The client refuses them; remote_session_straight_test has sessions that do."""
        self.check_copies(self.lend_gpus(), **UCX)
        self.check_copies(self.lend_gpus(), DIOMP_NETWORK="tcp")

    def test_numbers_that_no_device_has(self):
        """The program ends with LLVM's sentence, as it does without remote devices."""
        lender = self.lend()
        for mode in "bad_device", "bad_region":
            client = self.start_client(lender, [MISUSE, mode])
            self.assert_ends_with_error(client, "[Dd]evice number '7' out of range, only 2 devices available")
            self.assertEqual(self.last_output, "then 42\n")
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions")
        self.assert_serves(lender)

    def test_memory_that_is_full_and_freed(self):
        status, out, err = self.run_client(self.lend(1, memory="64M"), [MISUSE, "exhaust"])
        self.assertEqual((status, out), (0, "round 0: full, wrong 0, then 42\nround 1: full, wrong 0, then 42\n"
                                            "as much as before\nwent on\n"), err)
        self.assertRegex(err, "remote device 0 .*no space for 4 MiB; .* of 64 MiB are in use, .*--memory")

    def test_more_than_the_slot_of_a_gpu_holds(self):
        """What changes over there does so in parts."""
        lender = self.lend("host", memory="8M")
        self.exercise(f"{lender.name}*2", 0, 2, "map_large", "globals", "copies_globals", "copies_between",
                      "enter_nowait", "threads")

    def test_connections_without_a_token_have_no_end(self):
        """Each is closed, none leaves anything behind, and a client that has the token is served meanwhile."""
        lender = self.lend(1)
        client = self.start_client(lender, [MISUSE, "busy"])
        session = self.session_of(client)
        for i in range(300):
            with socket.create_connection(("127.0.0.1", lender.port), LIMIT_S) as other:
                other.sendall(random.Random(i).randbytes((88, 128, 1000)[i % 3]))
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(other.recv(1000), b"")
        self.assertEqual(lender.sessions(), [session])
        self.assertIsNone(client.poll())
        self.assert_serves(lender)
        client.kill()
        self.assert_gone(session)
        lender.end()
        warnings = lender.process.stderr.read().count("connection from")
        self.assertTrue(1 <= warnings <= 8, warnings)  # four a minute

    # ---- Ends in the middle

    def check_end_while(self, mode, services, lender, how, **variables):
        """The client is ended if there is no lender to end."""
        client = self.start_client(services, [MISUSE, mode], variables)
        session = self.session_of(client)
        if lender is not None:
            lender.end(how)
            self.assert_gone(session)
            self.assert_ends_with_error(client, "remote device [01] .*(gone|over|unreachable|fail|service|closed)")
            return
        client.send_signal(how)
        client.wait(END_LIMIT_S)
        self.assert_gone(session)

    def test_service_is_killed_while_regions_are_queued(self):
        for posted in "on", "off":
            lender = self.lend()
            self.check_end_while("queued", lender, lender, signal.SIGKILL, DIOMP_POSTED_REGIONS=posted)

    def test_one_of_two_services_is_killed_while_regions_are_queued(self):
        first, second = self.lend(1), self.lend(1)
        client = self.start_client(f"{first.name},{second.name}", [MISUSE, "queued"])
        session = self.session_of(client)
        second.end(signal.SIGKILL)
        self.assert_ends_with_error(client, "remote device 1 .*(gone|over|unreachable|fail|service|closed)")
        self.assert_gone(session)
        self.assert_serves(first)

    def test_service_is_killed_while_devices_copy(self):
        lender = self.lend()
        self.check_end_while("copying", lender, lender, signal.SIGKILL)
        lender = self.lend("host", DIOMP_NETWORK_DEVICE_MEMORY="on")
        self.check_end_while("copying", f"{lender.name}*2", lender, signal.SIGKILL, **UCX)

    def test_client_is_killed_while_devices_copy(self):
        for devices, variables in (2, {}), (2, UCX), ("host", UCX), ("host", {}):
            lender = self.lend(devices, DIOMP_NETWORK_DEVICE_MEMORY="on")
            self.check_end_while("copying", f"{lender.name}*2", None, signal.SIGKILL, **variables)
            self.wait_until(lambda lender=lender: not lender.sessions(), "the end of all sessions", END_LIMIT_S)
            self.assert_serves(lender)
            self.assertEqual(lender.end(), 0)
            self.assertEqual(self.files(), [])

    def test_client_is_killed_while_regions_are_queued(self):
        lender = self.lend()
        self.check_end_while("queued", lender, None, signal.SIGKILL)
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions", END_LIMIT_S)
        self.assert_serves(lender)

    def test_two_clients_and_one_is_killed(self):
        """The other one's regions go on, on the same devices."""
        lender = self.lend()
        first = self.start_client(lender, [MISUSE, "copying"])
        second = self.start_client(lender, [MISUSE, "busy"])
        sessions = [self.session_of(first), self.session_of(second)]
        self.assertEqual(len(lender.sessions()), 4)
        first.kill()
        first.wait(END_LIMIT_S)
        self.assert_gone(sessions[0])
        self.assertIsNone(second.poll())
        self.exercise(lender, 0, 2, "many_chains", "same_array")
        self.assertIsNone(second.poll())
        second.kill()
        self.assert_gone(sessions[1])


if __name__ == "__main__":
    unittest.main()
