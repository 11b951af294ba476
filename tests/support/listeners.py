# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All sockets by which another process could reach the processes of a job, from /proc.

As a program it prints them as JSON for all processes that it sees.
"""
import collections
import ipaddress
import json
import os
import re
import sys

# what: tcp, udp or unix; where: an address, or the name of a Unix socket ('@' begins an abstract one)
Listener = collections.namedtuple("Listener", "pid what where port")

TCP_LISTENS = "0A"
ACCEPTS = 0x10000  # of /proc/net/unix
DATAGRAM = 2


def _inodes(pid):
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
            if match:
                found.add(int(match[1]))
    except OSError:
        pass  # it has ended, or closed one
    return found


def _rows(pid, table):
    try:
        with open(f"/proc/{pid}/net/{table}") as file:
            return [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []


def _address(text):
    """Of the kernel's words of 32 bits in the order of the host."""
    words = [int(text[i:i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    return str(getattr(address, "ipv4_mapped", None) or address)


def of_process(pid):
    own = _inodes(pid)
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for row in _rows(pid, table):
            is_open = row[3] == TCP_LISTENS if table.startswith("tcp") else row[1].rpartition(":")[2] != "0000"
            if int(row[9]) in own and is_open:
                address, port = row[1].split(":")
                found.append(Listener(pid, table[:3], _address(address), int(port, 16)))
    for row in _rows(pid, "unix"):
        accepts = int(row[3], 16) & ACCEPTS or (int(row[4], 16) == DATAGRAM and len(row) > 7)
        if int(row[6]) in own and accepts:
            found.append(Listener(pid, "unix", row[7] if len(row) > 7 else "", 0))
    return found


def of_processes(pids):
    return [each for pid in pids for each in of_process(pid)]


def main():
    found = of_processes([int(word) for word in os.listdir("/proc") if word.isdigit()])
    print(json.dumps([each._asdict() for each in found]))


if __name__ == "__main__":
    main()
