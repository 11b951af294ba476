# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the network between hosts of scripts/test-hosts.py shows."""
import select
import socket
import threading


class wiretap:
    """All bytes that pass the first host's interface, searched for a phrase."""

    def __init__(self, phrase):
        self.phrase = phrase
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
        self.socket.bind(("eth0", 0))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 25)
        self.num_bytes = 0
        self.num_found = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.listen)

    def listen(self):
        while not self.is_over.is_set():
            if not select.select([self.socket], [], [], 0.1)[0]:
                continue
            packet = self.socket.recv(1 << 17)
            self.num_bytes += len(packet)
            self.num_found += self.phrase in packet

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        self.socket.close()
