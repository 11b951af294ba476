#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remote devices whose data goes by UCX, and memory of GPUs that it reaches: LLVM's host plugin is in the GPU's place."""
import os
import re
import unittest

import listeners
import processes
from services import CUDA, LIMIT_S, MISUSE, MOVER, remote_case, service

UCX = {"DIOMP_NETWORK": "ucx"}
MOVED = r"the device's own memory: (\d+) bytes by zero copy over the network, (\d+) staged in the session's"


class remote_network_test(remote_case):
    def lend(self, devices, device_memory="on"):
        return service(self, devices=devices, DIOMP_LOG="info", DIOMP_NETWORK_DEVICE_MEMORY=device_memory)

    def moved(self, lenders, sessions):
        """(bytes straight, bytes by way of the session's memory), of all sessions, as the services' logs have them."""
        log = ""
        for each in lenders:
            self.wait_until(lambda each=each: not each.sessions(), "the end of all sessions")
            each.process.terminate()
            log += each.process.communicate(timeout=LIMIT_S)[1]
        found = re.findall(MOVED, log)
        self.assertEqual(len(found), sessions, log)
        return tuple(sum(int(each[i]) for each in found) for i in range(2))

    def test_processors(self):
        err = self.exercise(service(self, devices=2), 0, 2, DIOMP_LOG="info", **UCX)
        self.assertRegex(err, "is reached by ucx")

    def test_confined_processors(self):
        lender = service(self, "--confine", "available", devices=2)
        err = self.exercise(lender, 0, 2, DIOMP_LOG="info", **UCX)
        self.assertRegex(err, "is reached by ucx")
        lender.end()
        self.assertNotIn("accept connections from every host", err + lender.process.stderr.read())

    def test_confined_regions_make_calls(self):
        lender = service(self, "--confine", "available", devices=2, memory="1G")
        err = self.calls_in_regions(lender, 2, DIOMP_LOG="info", **UCX)
        self.assertRegex(err, "is reached by ucx")

    @unittest.skipIf(os.path.exists("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"), "has an adapter")
    def test_ucx_is_not_chosen_without_adapters(self):
        for wish in {}, {"DIOMP_NETWORK": "auto"}, {"DIOMP_NETWORK": "gasnet"}:
            err = self.exercise(service(self, devices=2), 0, 2, "copies_between", DIOMP_LOG="info", **wish)
            self.assertNotIn("ucx", err.lower())

    def test_ports_of_one_machine_are_on_loopback(self):
        lender = service(self, devices=2)
        busy = self.start_client(lender, [MISUSE, "busy"], UCX)
        session = self.session_of(busy)
        found = [each for each in listeners.of_processes(processes.carrying(*self.mark)) if each.what != "unix"]
        self.assertGreaterEqual(len({each.pid for each in found}), 3)  # service, session, client
        self.assertEqual({each.where for each in found}, {"127.0.0.1"}, found)
        busy.kill()
        self.assert_gone(session)

    def test_a_session_that_prints_before_it_is_there(self):
        """What it logs while its world starts goes to the service's log."""
        lender = service(self, memory="1T", DIOMP_LOG="info")  # more than can be registered
        err = self.exercise(lender, 0, 1, "devices", **UCX)
        self.assertNotIn("service", err)
        lender.process.terminate()
        self.assertRegex(lender.process.communicate(timeout=LIMIT_S)[1],
                         r"diomp: \[service\] .*too large to be registered")

    def test_memory_of_a_gpu_straight(self):
        """Everything above the threshold, in both directions and from device to device."""
        lender = self.lend("host")
        self.exercise(f"{lender.name}*2", 0, 2, "map_large", "update", "copies", "copies_between",
                      "copies_async", "rectangles", "threads", "many_tasks", "depend_across", **UCX)
        straight, by_way = self.moved([lender], sessions=2)
        self.assertGreater(straight, 1 << 20)
        self.assertEqual(by_way, 0)

    def test_all_cases_with_memory_of_a_gpu(self):
        """Variables of images as well: they are no allocations."""
        lender = self.lend("host")
        self.exercise(f"{lender.name}*2", 0, 2, **UCX)
        straight, by_way = self.moved([lender], sessions=2)
        self.assertGreater(straight, 1 << 20)
        self.assertEqual(by_way, 0)

    def test_variables_of_images_for_processors(self):
        """Straight where the session moves data itself; over TCP the client does, and reaches the slot only."""
        for network, least in ("ucx", 1 << 20), ("tcp", 0):
            lender = self.lend(2)
            self.exercise(f"{lender.name}*2", 0, 2, "globals", "copies_globals", DIOMP_NETWORK=network)
            straight, by_way = self.moved([lender], sessions=2)
            self.assertEqual(straight > 0, least > 0, network)
            self.assertGreaterEqual(straight, least)
            self.assertEqual(by_way, 0)

    def test_every_transfer_straight(self):
        lender = self.lend("host")
        self.exercise(f"{lender.name}*2", 0, 2, DIOMP_SPLIT_THRESHOLD="1", **UCX)
        self.assertGreater(self.moved([lender], sessions=2)[0], 1 << 20)

    def test_memory_of_a_gpu_by_way_of_the_slot(self):
        """Where either side says no, and where the network does not reach it."""
        for device_memory, variables in (("off", UCX), ("auto", UCX), ("on", {"DIOMP_NETWORK": "tcp"}),
                                         ("on", {"DIOMP_NETWORK_DEVICE_MEMORY": "off", **UCX})):
            lender = self.lend("host", device_memory)
            self.exercise(f"{lender.name}*2", 0, 2, "copies", "copies_between", "copies_async", **variables)
            straight, by_way = self.moved([lender], sessions=2)
            self.assertEqual(straight, 0, (device_memory, variables))
            self.assertGreater(by_way, 1 << 20)

    def test_gpus_and_processors_together(self):
        first, second = self.lend("host"), self.lend(1)
        self.exercise(f"{first.name}*1,{second.name}", 0, 2, "copies_between", "copies_async", "depend_across",
                      "rectangles", "threads", **UCX)
        straight, by_way = self.moved([first, second], sessions=2)
        self.assertGreater(straight, 1 << 19)
        self.assertEqual(by_way, 0)

    def test_queues_wait_for_large_gets_of_each_other(self):
        for variables in UCX, {"DIOMP_NETWORK": "tcp"}:
            lender = service(self, devices=2)
            status, out, err = self.run_client(lender, MOVER, variables)
            self.assertEqual((status, out), (0, "mover: ok\n"), err)

    def move(self, **variables):
        """Two devices of LLVM's CUDA plugin, on the stand-in for the driver. What was moved, most of it in large parts."""
        folder = os.path.join(self.folder, "cuda")
        os.makedirs(folder, exist_ok=True)
        if not os.listdir(folder):
            os.symlink(CUDA, os.path.join(folder, "libcuda.so.1"))
        lender = service(self, devices="cuda", DIOMP_LOG="info", LD_LIBRARY_PATH=folder, FAKE_CUDA_COMPLAINTS="tell",
                         **variables)
        status, out, err = self.run_client(f"{lender.name}*2", MOVER, UCX)
        self.assertEqual((status, out), (0, "mover: ok\n"), err)
        self.assertNotIn("fake_cuda", err)
        return self.moved([lender], sessions=2)

    def test_cuda_plugin_straight(self):
        straight, by_way = self.move(DIOMP_NETWORK_DEVICE_MEMORY="on", FAKE_CUDA_LOADS="any")
        self.assertGreater(straight, 20 << 20)
        self.assertEqual(by_way, 0)

    def test_cuda_plugin_by_way_of_the_slot(self):
        """Memory that processors do not load: whoever touches it crashes. No UCX of this machine knows CUDA."""
        for device_memory in "off", "auto":
            straight, by_way = self.move(DIOMP_NETWORK_DEVICE_MEMORY=device_memory)
            self.assertEqual(straight, 0)
            self.assertGreater(by_way, 20 << 20)


if __name__ == "__main__":
    unittest.main()
