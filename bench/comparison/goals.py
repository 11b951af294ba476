# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The goals of DiOMP, as rules over the measured times.

A rule gives a sentence and the largest value of "our time / what it is compared with" that passes.
"""

PEERS = ["openmpi", "mpich", "openshmem"]
LARGE = 64 * 1024
# At least 0.97 of the limit's bandwidth.
LIMIT_FACTOR = 1 / 0.97
# Two libraries that copy at the speed of the memory are equal: a ratio that prints as 1.00.
TIE_FACTOR = 1.005


def against_peers(us, factor=1.0):
    """(our time / fastest peer's, largest that passes); None without a peer."""
    times = [us[peer] for peer in PEERS if peer in us]
    return (us["diomp"] / min(times), factor) if times else None


def against_openmpi(us, factor):
    return (us["diomp"] / us["openmpi"], factor) if "openmpi" in us else None


def copy_limit(results, row, library):
    """The faster of memcpy and streaming stores.

    "diomp": between the buffers of put and get, sample by sample in turn with them. "limits": over a memfd of a
    program without a library.
    """
    times = []
    for copy in ("memcpy", "stream"):
        times += results.median(f"{copy}_{row['operation']}", "private", row, library)
    return min(times, default=None)


def transfer_goal(results, row):
    us, size = row["us"], row["size_bytes"]
    if row["ranks"] != 2:
        return None
    if size <= 8:
        return "<= 0.25 Open MPI", [against_openmpi(us, 0.25)]
    if size <= 4096:
        return "<= 0.6 Open MPI", [against_openmpi(us, 0.6)]
    limit = copy_limit(results, row, "diomp")
    if size < LARGE or limit is None:
        return None
    return ">= 0.97 limit, <= peers", [(us["diomp"] / limit, LIMIT_FACTOR), against_peers(us, TIE_FACTOR)]


def collective_goal(row):
    if row["buffers"] == "global":
        return None  # for information: peers have no such memory
    if row["ranks"] > 2:
        return "<= all peers", [against_peers(row["us"])]
    if row["operation"] == "barrier" or row["size_bytes"] >= LARGE:
        return "<= 0.6 Open MPI", [against_openmpi(row["us"], 0.6)]
    return "< Open MPI", [against_openmpi(row["us"], 1.0)]


def rate_goal(results, row):
    single = results.median("rate", row["buffers"], dict(row, threads=1), "diomp")
    if row["threads"] == 1 or not single:
        return None
    return "2 threads >= 1.5 x 1", [(row["us"]["diomp"] / single[0], 1 / 1.5)]


def goal_of(results, row):
    """(sentence, list of (value, largest)) or None if there is no goal for this row."""
    operation = row["operation"]
    if operation in ("put", "get"):
        return transfer_goal(results, row)
    if operation in ("barrier", "bcast", "allreduce"):
        return collective_goal(row)
    if operation == "rate":
        return rate_goal(results, row)
    if operation == "startup":
        return "< 0.15 s", [(row["us"]["diomp"] / 150e3, 1.0)]
    if operation == "resident_kib":
        return "<= 8 MiB", [(row["us"]["diomp"] / 8192, 1.0)]
    return None


def add_limits(results, rows):
    """The columns of put and get that come from other rows."""
    for row in rows:
        if row["operation"] in ("put", "get"):
            for column, library in (("copy_limit", "diomp"), ("limits", "limits")):
                limit = copy_limit(results, row, library)
                row["us"].update({column: limit} if limit else {})


def judge(results, goal=goal_of):
    """The rows of the comparison with ratios, goal and verdict: PASS, MISS, n/a (a peer is missing) or "-"."""
    rows = results.rows()
    add_limits(results, rows)
    for row in rows:
        us = row["us"]
        row["goal"], row["verdict"], row["ratio"] = "", "-", {}
        if "diomp" not in us:
            continue
        found = goal(results, row)
        row["ratio"] = {name: us["diomp"] / time for name, time in us.items() if name != "diomp" and time > 0}
        if found is None:
            continue
        row["goal"], checks = found
        if any(check is None for check in checks):
            row["verdict"] = "n/a"
        else:
            row["verdict"] = "PASS" if all(value <= largest for value, largest in checks) else "MISS"
    return rows
