# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TCP ports of processes, and connections to them that know no secret."""
import socket

import listeners


def listening(pids):
    """TCP ports at which these processes listen."""
    return {each.port for each in listeners.of_processes(pids) if each.what == "tcp"}


def connect(port):
    made = socket.create_connection(("127.0.0.1", port), 10)
    made.settimeout(10)
    return made


def received(connection):
    """What has come, at the latest by the connection's end."""
    try:
        return connection.recv(4096)
    except ConnectionError:
        return b""
