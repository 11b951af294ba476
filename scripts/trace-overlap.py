#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds up, from the traces of DIOMP_TRACE, how much communication was hidden behind computation.

  trace-overlap.py trace.0.json trace.1.json ...

A transfer is hidden while it is on its way (a flight) and its rank is inside no DiOMP call that may wait for it.
For each rank: time with a flight under way, the part of it outside of calls, and the time inside of calls.
diomp-trace puts them into one file for Perfetto.
"""
import argparse
import json
import sys


def union(intervals):
    """Disjoint intervals, ascending, that cover the same time."""
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(intervals):
    return sum(end - begin for begin, end in intervals)


def intersection(left, right):
    """Of two lists of disjoint ascending intervals."""
    result, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        begin, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if begin < end:
            result.append([begin, end])
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return result


def flights_and_calls(events):
    calls, flights, open_flights = [], [], {}
    for event in events:
        if event["ph"] == "X":
            calls.append([event["ts"], event["ts"] + event["dur"]])
        elif event["ph"] == "b":
            open_flights[event["id"]] = event["ts"]
        elif event["ph"] == "e":
            flights.append([open_flights.pop(event["id"]), event["ts"]])
    return union(flights), union(calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    options = parser.parse_args()
    ranks = {}
    for path in options.traces:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        for event in events:
            ranks.setdefault(event["pid"], []).append(event)
    print(f"{'rank':>5} {'in flight ms':>13} {'hidden ms':>10} {'hidden':>7} {'in calls ms':>12}")
    for rank, events in sorted(ranks.items()):
        flights, calls = flights_and_calls(events)
        hidden = length(flights) - length(intersection(flights, calls))
        share = f"{hidden / length(flights):.0%}" if flights else "-"
        print(f"{rank:>5} {length(flights) / 1e3:>13.3f} {hidden / 1e3:>10.3f} {share:>7} {length(calls) / 1e3:>12.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
