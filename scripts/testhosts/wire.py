# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A wire in user space, for kernels without `tc netem`: passes frames from one interface to another and back, loses and
delays those that leave the host, and limits the rate of each direction."""
import heapq
import random
import select
import socket
import time

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_VNET_HDR = 15
PACKET_OUTGOING = 4
# A frame may be one of 64 KiB that the card would cut, with the header that says so.
FRAME_BYTES = 10 + 14 + (1 << 16)
# Fixed, so that a test loses the same frames again as far as its traffic is the same.
SEED = 20241


def open_port(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    # Checksums and the cutting of large frames are left to the card: the header carries that across.
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    port.bind((name, ETH_P_ALL))
    port.setblocking(False)
    return port


def received(port):
    while True:
        try:
            frame, address = port.recvfrom(FRAME_BYTES)
        except OSError:
            return
        if address[2] != PACKET_OUTGOING:
            yield frame


def put(port, frame):
    try:
        port.send(frame)
    except OSError:
        pass  # the interface is down or full: lost, as on a wire


class direction:
    """One direction of a full-duplex wire of `rate` bytes per second; 0: unlimited."""

    def __init__(self, rate):
        self.rate = rate
        self.free_at = 0.0

    def sent_at(self, now, nbytes):
        """When the last byte of a frame has left, if the frame is there as a whole now."""
        if self.rate:
            self.free_at = max(now, self.free_at) + nbytes / self.rate
            return self.free_at
        return now

    def received_at(self, now, nbytes):
        """The same for a frame whose last byte comes now, after the others at this rate."""
        if self.rate:
            self.free_at = max(now, self.free_at + nbytes / self.rate)
            return self.free_at
        return now


def relay(host_side, net_side, loss_percent, delay_ms, rate, ready):
    """Never returns. `ready` is called when frames are passed."""
    host, net = open_port(host_side), open_port(net_side)
    chance = random.Random(SEED)
    leaving, arriving = direction(rate), direction(rate)
    # (when it is due, number, port, frame): the number keeps the order of frames due at once.
    waiting = []
    number = 0
    ready()
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([host, net], [], [], timeout)
        if net in readable:
            for frame in received(net):
                number += 1
                due = arriving.received_at(time.monotonic(), len(frame))
                heapq.heappush(waiting, (due, number, host, frame))
        if host in readable:
            for frame in received(host):
                if chance.random() * 100 >= loss_percent:
                    number += 1
                    due = leaving.sent_at(time.monotonic(), len(frame)) + delay_ms / 1000
                    heapq.heappush(waiting, (due, number, net, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, port, frame = heapq.heappop(waiting)
            put(port, frame)
