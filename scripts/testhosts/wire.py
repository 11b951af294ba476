# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bad wire in user space, for kernels without `tc netem`: passes frames from one interface to another and back, and
loses and delays those that leave the host."""
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


def relay(host_side, net_side, loss_percent, delay_ms, ready):
    """Never returns. `ready` is called when frames are passed."""
    host, net = open_port(host_side), open_port(net_side)
    chance = random.Random(SEED)
    # (when it is due, number, frame): the number keeps the order of frames due at once.
    waiting = []
    number = 0
    ready()
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([host, net], [], [], timeout)
        if net in readable:
            for frame in received(net):
                put(host, frame)
        if host in readable:
            for frame in received(host):
                if chance.random() * 100 >= loss_percent:
                    number += 1
                    heapq.heappush(waiting, (time.monotonic() + delay_ms / 1000, number, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            put(net, heapq.heappop(waiting)[2])
