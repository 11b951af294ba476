#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that know nothing of DiOMP, on devices of services on this host."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from services import CUDA, EVENTS, EXERCISE, LIBRARIES, LIMIT_S, MISUSE, POSTED, SERVICE, VIRTUALS, forwarder, remote_case, service

LOCAL_DEVICES = 4
IMAGE_FOR_STAND_IN = Path(__file__).parent.parent / "image_for_stand_in.py"


class remote_test(remote_case):
    def test_remote_devices_alone(self):
        self.exercise(service(self, devices=2), 0, 2)

    def test_beside_local_devices(self):
        self.exercise(service(self, devices=1), LOCAL_DEVICES, 1, DIOMP_LOCAL_DEVICES="on")

    def test_two_services(self):
        first, second = service(self), service(self, devices=2, memory="300M")
        self.exercise(f"{first.name},{second.name}*1", 0, 2, "devices", "map_sizes", "copies_between", "copies_async",
                      "depend_across", "many_tasks", "globals", "threads")

    def test_devices_of_an_llvm_plugin(self):
        """Host devices driven as GPUs are: memory, images and kernels through LLVM's plugin."""
        lender = service(self, devices="host")
        self.exercise(f"{lender.name}*2", 0, 2)

    def test_gpus_on_the_stand_in(self):
        """LLVM's plugin for CUDA; the images for the processor are taken for the GPU's."""
        program = Path(self.folder, "exercise")
        shutil.copy(EXERCISE, program)
        subprocess.run([IMAGE_FOR_STAND_IN, program], check=True)
        driver = Path(self.folder, "driver")
        driver.mkdir()
        Path(driver, "libcuda.so.1").symlink_to(CUDA)
        Path(driver, "libcuda.so").symlink_to(CUDA)
        lender = service(self, devices="cuda", LD_LIBRARY_PATH=str(driver), FAKE_CUDA_LOADS="any", FAKE_CUDA_MEBIBYTES="1024",
                         FAKE_CUDA_COMPLAINTS="tell")
        status, out, err = self.run_client(f"{lender.name}*2", [str(program), "0", "2"])
        self.assertEqual((status, out), (0, "exercise: ok\n"), err)
        self.assertNotIn("fake_cuda", err)

    def test_llvm_plugin_and_processors_together(self):
        first, second = service(self, devices="host"), service(self)
        self.exercise(f"{first.name}*1,{second.name}", 0, 2, "copies_between", "copies_async", "depend_across",
                      "globals", "rectangles", "threads")

    def test_every_transfer_straight(self):
        self.exercise(service(self, devices=2), 0, 2, DIOMP_SPLIT_THRESHOLD="1")

    def test_every_transfer_in_messages(self):
        self.exercise(service(self, devices=2), 0, 2, DIOMP_SPLIT_THRESHOLD="1G")

    def test_threshold_in_between(self):
        self.exercise(service(self, devices=2), 0, 2, "map_sizes", "map_structs", "globals", "update", "many_tasks",
                      "copies_between", "enter_nowait", DIOMP_SPLIT_THRESHOLD="100")

    def test_virtual_functions_of_objects_that_regions_have_created(self):
        for devices in (2, "host"):
            with self.subTest(devices):
                lender = service(self, devices=devices)
                status, out, err = self.run_client(f"{lender.name}*2" if devices == "host" else lender,
                                                   [VIRTUALS, "region"])
                self.assertEqual((status, out), (0, "virtuals: ok\n"), err)

    def test_output_is_complete_and_in_order(self):
        lines, devices = 20000, 2
        status, out, err = self.run_client(service(self, devices=devices), [EXERCISE, "0", str(devices), "print"])
        self.assertEqual(status, 0, err)
        expected = []
        for device in range(devices):
            expected.append(f"before {device}")
            expected += [f"line {i} of device {device} {i:022d}" for i in range(lines)]
            expected.append(f"after {device}")
        expected += ["without an end and with", "exercise: ok"]
        self.assertEqual(out.splitlines(), expected)
        self.assertGreater(len(out), 1 << 20)
        self.assertEqual([line for line in err.splitlines() if line.startswith("errors")],
                         [f"errors of device {device}" for device in range(devices)])

    def test_tools_see_the_same_events_as_of_local_devices(self):
        """OMPT's events of the default device, of constructs, data and kernels: equally many bytes, in the same order."""
        if b"ompt_libomptarget_connect" not in Path(LIBRARIES, "libomptarget.so").read_bytes():
            self.skipTest("this version's libomptarget has no OMPT")
        seen = []
        for services, variables in ("", {"DIOMP_LOCAL_DEVICES": "on"}), (service(self), {}):
            status, out, err = self.run_client(services, [EVENTS], variables)
            self.assertEqual(status, 0, err)
            seen.append([line for line in out.splitlines() if line == "initialize 0" or not line.startswith("initialize")])
        on_local, on_remote = seen
        self.assertEqual(on_remote, on_local)
        self.assertEqual(on_remote.pop(), "2 999")
        self.assertEqual(collections.Counter(line.split()[0] for line in on_remote),
                         {"initialize": 1, "load": 1, "target": 12, "data": 26, "submit": 4})

    def test_posted_regions_happen_in_order(self):
        lender = service(self, devices=2)
        for variables in {}, {"DIOMP_POSTED_REGIONS": "off"}, {"DIOMP_SPLIT_THRESHOLD": "1"}, {"LIBOMP_NUM_HIDDEN_HELPER_THREADS": "1"}:
            status, out, err = self.run_client(lender, [POSTED, "order", "0", "2"], variables)
            self.assertEqual((status, out, err), (0, "in order\n", ""), variables)

    def test_short_regions_are_posted_and_long_ones_waited_for(self):
        lender = service(self)
        status, out, err = self.run_client(lender, [POSTED, "early", "0", "1"])
        self.assertEqual(status, 0, err)
        (posted, whole, count), (again, whole_again, count_again) = [map(float, line.split()) for line in out.splitlines()]
        self.assertLess(posted, 0.15, "it was short before, so nobody waits")
        self.assertGreater(whole, 0.29, "what brings its result back does")
        self.assertGreater(again, 0.29, "it was long before")
        self.assertGreater(whole_again, 0.29)
        self.assertEqual((count, count_again), (4, 5))
        status, out, err = self.run_client(lender, [POSTED, "early", "0", "1"], {"DIOMP_POSTED_REGIONS": "off"})
        self.assertEqual(status, 0, err)
        for line in out.splitlines():
            self.assertGreater(float(line.split()[0]), 0.29)

    def test_two_clients_at_once(self):
        lender = service(self, devices=2)
        cases = [EXERCISE, "0", "2", "devices", "globals", "map_sizes", "many_tasks", "update", "reductions", "state"]
        clients = [self.start_client(lender, cases) for _ in range(2)]
        for client in clients:
            out, err = client.communicate(timeout=LIMIT_S)
            self.assertEqual((client.returncode, out), (0, "exercise: ok\n"), err)
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions")

    def test_an_image_is_sent_once(self):
        """It is in memory of the service, for all clients, and nowhere else."""
        lender = service(self)
        with forwarder(lender.port) as between:
            self.assert_serves(between)
            with_image = between.num_bytes
            self.wait_until(lambda: not lender.sessions(), "the end of the session")
            self.assertGreater(with_image, 5000)
            for _ in range(3):
                before = between.num_bytes
                self.assert_serves(between)
                self.assertLess(between.num_bytes - before, with_image // 2)
        self.assertEqual(self.files(), [])
        self.assertEqual(lender.end(), 0)

    def test_no_files_of_images(self):
        """Neither of LLVM's host devices in the program nor of a session that drives them."""
        def temporary():
            return {name for name in os.listdir("/tmp") if name.startswith(("tmpfile_", "diomp-"))}
        before = temporary()
        self.exercise("", 0, LOCAL_DEVICES, "globals", DIOMP_LOCAL_DEVICES="on")
        self.exercise(f"{service(self, devices='host').name}*1", 0, 1, "globals")
        own = {name for name in temporary() - before if os.stat(os.path.join("/tmp", name)).st_uid == os.getuid()}
        self.assertEqual({name for name in own if self.is_image(os.path.join("/tmp", name))}, set())

    def test_sessions_of_two_services_share_memory(self):
        lenders = [service(self), service(self)]
        self.assertRegex(self.paths(*lenders), r"remote device 0 by shm; from own remote devices by shm[^,]")
        self.assertIn("by shm, service to service", self.paths(*lenders, DIOMP_NODE_SIZE="4"))
        self.assertIn("by tcp, service to service", self.paths(*lenders, DIOMP_CONDUIT="tcp"))
        self.assertIn("by tcp, service to service", self.paths(*lenders, DIOMP_NODE_SIZE="1"))

    def test_sessions_that_share_memory_leave_nothing(self):
        """However they end; the others of the job end too, and the service goes on."""
        lender = service(self, devices=3, memory="1G")
        for victim in (0, 1):
            before = set(os.listdir("/dev/shm"))
            job = self.start_calls_in_regions(lender, 3)
            self.wait_until(lambda: len(lender.sessions()) == 3 or job.poll() is not None, "three sessions")
            sessions = lender.sessions()
            if len(sessions) == 3:
                os.kill(sessions[victim], signal.SIGKILL)
            job.communicate(timeout=LIMIT_S)
            self.wait_until(lambda: not lender.sessions(), "the end of all sessions")
            # Programs that were killed earlier may have left files whose numbers are these or contain them.
            own = {f"__KMP_REGISTERED_LIB_{pid}_{os.getuid()}" for pid in sessions} - before
            self.wait_until(lambda own=own: own.isdisjoint(os.listdir("/dev/shm")), "the end of libomp's files")
            self.assertEqual(self.files(), [])
        self.calls_in_regions(lender, 3)

    def test_a_service_that_ends_leaves_no_files_of_its_sessions(self):
        lender = service(self, devices=2)
        before = set(os.listdir("/dev/shm"))
        client = self.start_client(f"{lender.name}*2", [MISUSE, "endless"])
        self.session_of(client)  # its region has begun
        own = {f"__KMP_REGISTERED_LIB_{pid}_{os.getuid()}" for pid in lender.sessions()} - before
        self.assertFalse(own.isdisjoint(os.listdir("/dev/shm")))
        lender.end()
        client.communicate(timeout=LIMIT_S)
        self.assertTrue(own.isdisjoint(os.listdir("/dev/shm")))

    def test_a_service_that_asks_a_plugin_for_devices_leaves_no_files(self):
        """In a /dev/shm of its own, since other programs write to the machine's."""
        script = ('mount -t tmpfs none /dev/shm || exit 77; "$0" --devices host --port 0 --print-port >"$1/out" & '
                  'until [ -s "$1/out" ] || ! kill -0 $!; do sleep 0.05; done; kill $!; wait $!; cat "$1/out"; ls /dev/shm')
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["unshare", "-m", "bash", "-c", script, SERVICE, folder], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, DIOMP_TOKEN="0123456789abcdef" * 2))
        if done.returncode == 77 or "unshare" in done.stderr:
            self.skipTest("no mount namespace: " + done.stderr)
        self.assertRegex(done.stdout, r"^\d+\n$", done.stderr)  # its port alone

    @staticmethod
    def is_image(path):
        """Of the program of this test: others run at the same time."""
        return os.path.isfile(path) and b"exercise" in Path(path).read_bytes()

    def test_statistics(self):
        """Messages, bytes and time by device, direction and kernel."""
        lender = service(self, devices=2)
        path = Path(self.folder, "stats.%r.txt")
        err = self.exercise(lender, 0, 2, "map_sizes", "copies_between", DIOMP_STATS="summary")
        self.assertRegex(err, r"diomp: statistics of the remote devices of rank 0 of 1 on \S+ \(process \d+\)\n"
                              r"  remote 0: remote device 0 \(cpu on \S+\), host \S+, .*\n  remote 1: ")
        rows = {}
        for line in err.splitlines():
            found = re.match(r"  (\S.*?)  +(\S.*?)?  +(\d+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)$", line)
            if found:
                what, by, calls, nbytes, total, mean, longest = found.groups()
                rows[what, by or ""] = int(calls), int(nbytes), float(total)
        for device in 0, 1:
            for direction in "to", "from":
                for by in "message", "memory":  # the service is on this host
                    calls, nbytes, total = rows[f"{direction} remote {device}", by]
                    self.assertGreater(calls, 0)
                    self.assertGreater(nbytes, 0)
                    self.assertGreater(total, 0)
            sent, received = rows[f"messages to remote {device}", ""], rows[f"replies of remote {device}", "round trip"]
            self.assertGreaterEqual(sent[0], received[0])
            self.assertGreater(received[0], 0)
            self.assertGreater(sent[1], rows[f"to remote {device}", "message"][1])
            self.assertGreater(rows[f"wait for remote {device}", ""][2], 0)
            self.assertEqual(rows[f"load image on remote {device}", ""][0], 1)
            kernels = [row for (what, by), row in rows.items() if what.startswith("kernel ") and by == f"remote {device}"]
            self.assertGreater(len(kernels), 0)
            self.assertGreater(sum(total for _, _, total in kernels), 0)
        self.exercise(lender, 0, 2, "devices", DIOMP_STATS="summary", DIOMP_STATS_FILE=str(path))
        self.assertIn("remote 1", Path(self.folder, "stats.0.txt").read_text())

    def test_statistics_count_kernels_exactly(self):
        status, out, err = self.run_client(service(self), [MISUSE, "small_parallel"], {"DIOMP_STATS": "summary"})
        self.assertEqual(status, 0, err)
        self.assertRegex(err, r"\n  kernel small_parallel:\d+ +remote 0 +1 +0 ")

    def test_trace(self):
        path = Path(self.folder, "trace.json")
        self.exercise(service(self, devices=2), 0, 2, "map_sizes", DIOMP_TRACE=str(path))
        events = json.loads(path.read_text())
        names = collections.Counter(event["name"] for event in events)
        for expected in ("to remote 0", "from remote 1", "wait for remote 0", "load image on remote 1"):
            self.assertGreater(names[expected], 0, names)
        self.assertTrue(any(re.fullmatch(r"\w+:\d+ on remote 0", name) for name in names), names)
        slices = [event for event in events if event["ph"] == "X"]
        self.assertTrue(all(event["dur"] >= 0 for event in slices))

    def test_the_log_stays_with_the_service(self):
        """What regions print comes to the program, and nothing else."""
        lender = service(self, DIOMP_LOG="debug")
        status, out, err = self.run_client(lender, [MISUSE, "answer"])
        self.assertEqual((status, err), (0, ""))
        lender.process.terminate()
        _, log = lender.process.communicate(timeout=LIMIT_S)
        self.assertRegex(log, r"diomp: \[service\] info: the device's own memory")

    def test_threads_of_regions_alone_count(self):
        """libomp may have as many threads as a region's team: nothing else of a session is one to it, else it takes the
        processors for oversubscribed and yields at every look."""
        lender = service(self, KMP_DEVICE_THREAD_LIMIT="2")
        status, out, err = self.run_client(lender, [MISUSE, "small_parallel"])
        self.assertEqual((status, out), (0, "2 threads\nwent on\n"), err)
        lender = service(self, KMP_DEVICE_THREAD_LIMIT="2")
        status, out, err = self.run_client(lender, [MISUSE, "side_by_side"])
        self.assertEqual((status, out), (0, "2 threads\nwent on\n"), err)

    def test_once(self):
        lender = service(self, "--once", devices=2)
        self.exercise(lender, 0, 2, "devices")
        self.assertEqual(lender.process.wait(LIMIT_S), 0)
        self.assertEqual(self.files(), [])

    def test_count_of_devices(self):
        lender = service(self, devices=3)
        self.exercise(f"{lender.name}*2", 0, 2, "devices")
        self.exercise(f"{lender.name}*1,{lender.name}", 0, 4, "devices")

    def test_token_file(self):
        lender = service(self, token="of a file")
        path = Path(self.folder, "token")
        path.write_text("of a file\n")
        path.chmod(0o600)
        variables = {"DIOMP_TOKEN": "", "DIOMP_TOKEN_FILE": str(path)}
        self.exercise(lender, 0, 1, "devices", **variables)
        path.chmod(0o644)
        status, _, err = self.run_client(lender, [MISUSE, "answer"], variables)
        self.assertEqual(status, 0)
        self.assertRegex(err, f"{path}: other users can read it.*chmod 600")

    def test_regions_cannot_read_the_token(self):
        lender = service(self, token="a token")
        client = self.start_client(lender, [MISUSE, "endless"])
        session = self.session_of(client)
        status = Path(f"/proc/{session}/status").read_text()
        self.assertIn(f"PPid:\t{lender.process.pid}\n", status)
        self.assertNotIn(session, [client.pid, os.getpid()])
        client.kill()
        self.assert_gone(session)
        status, out, err = self.run_client(lender, [MISUSE, "token"])
        self.assertEqual((status, out), (0, "the token is not there\nwent on\n"), err)

    def test_control_connection_in_small_pieces(self):
        lender = service(self)
        with forwarder(lender.port, piece=7) as between:
            self.assert_serves(between)

    def test_processors_are_shared_out(self):
        """Sessions of a device are bound to its part of the processors."""
        lender = service(self, devices=2)
        own = os.sched_getaffinity(0)
        clients = [self.start_client(f"{lender.name}*1", [MISUSE, "endless"]) for _ in range(2)]
        sessions = [self.session_of(client) for client in clients]
        bound = [os.sched_getaffinity(pid) for pid in sessions]
        self.assertEqual(bound[0], bound[1])
        self.assertLessEqual(bound[0], own)
        self.assertEqual(len(bound[0]), max(1, len(own) // 2))
        for client in clients:
            client.kill()


if __name__ == "__main__":
    unittest.main()
