#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requests of target regions are slices of the proxy's thread in the trace. rings_trace.py DIOMP_RUN PROGRAM"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

launcher, program = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([launcher, "-n", "2", "--bind-to", "none", "--timeout", "60", "--", program,
                    "--gtest_filter=*puts_and_gets_between_devices/3"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DIOMP_TRACE": f"{folder}/%r.json"}, timeout=70)
    for rank in range(2):
        events = json.loads(pathlib.Path(folder, f"{rank}.json").read_text(encoding="utf-8"))
        events = events["traceEvents"] if isinstance(events, dict) else events
        asked = [event for event in events if event.get("args", {}).get("path") == "in region"]
        names = {event["name"] for event in asked}
        if not {"ompx_put", "ompx_get", "ompx_fence"} <= names:
            sys.exit(f"rank {rank}: requests in the trace: {names}")
        threads = {event["tid"] for event in asked}
        proxies = {event["tid"] for event in events
                   if event.get("name") == "thread_name" and event["args"]["name"].startswith("diomp-proxy")}
        if threads != proxies or len(threads) != 1:
            sys.exit(f"rank {rank}: requests by threads {threads}, proxies {proxies}")
        peers = {event["args"].get("peer") for event in asked if event["name"] == "ompx_put"}
        if peers != {1 - rank}:
            sys.exit(f"rank {rank}: peers {peers}")
        if any(event["args"]["bytes"] <= 0 for event in asked if event["name"] == "ompx_put"):
            sys.exit(f"rank {rank}: a put of no bytes")
