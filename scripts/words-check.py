#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds words that this project has given up for the field's: in identifiers, comments, messages, docs and man pages.

    scripts/words-check.py           prints each place and the word to use instead; exit status 1 if there is one
    scripts/words-check.py --count   prints how often each word occurs

Code: src, tools, include, llvm, fortran. Text: README.md, CONTRIBUTING.md, SECURITY.md, docs. docs/glossary.md defines
the words that are used. Identifiers are compared by their parts (`take_letter` has `letter`); a word of the English
language that was given up as a name only (place, way, room) stays allowed in sentences.
"""
import argparse
import collections
import re
import sys

from source_text import ROOT, compiled, tracked

# Parts of identifiers, and what to use instead.
NAMES = {
    "across": "internode",
    "announce": "publish, rtr",
    "answer": "reply, rpc_reply", "answers": "replies",
    "aside": "scratch",
    "asked": "args, request",
    "attendance": "poller_count, rank_tracker",
    "board": "kv_area, activity_table",
    "bridge": "internode",
    "brief": "short_arrive", "briefs": "short_arrive",
    "bury": "close",
    "card": "address_blob",
    "challenger": "candidate", "champion": "incumbent",
    "deserter": "premature_exit",
    "divert": "revoke_recv_buffer",
    "door": "listener",
    "farewell": "shutdown_timer",
    "gathering": "coalescer",
    "grain": "alignment",
    "greeting": "conn_req",
    "hear": "receive",
    "inbox": "match_queue", "mailbox": "matcher",
    "journal": "call_history",
    "landed": "fin, arrived", "landing": "rndv_buffer",
    "ledger": "alloc_directory",
    "letter": "tagged_message", "letters": "tagged_messages",
    "manner": "protocol",
    "meet": "arrive_and_wait", "meeting": "round", "meetings": "rounds",
    "mend": "reconnect",
    "most": "max",
    "nap": "idle_wait", "naps": "idle_waits",
    "nest": "thread_coalescer", "nests": "thread_coalescers",
    "newcomer": "pending_connection",
    "nudge": "wake",
    "objection": "veto", "objections": "vetoes",
    "parked": "blocked",
    "patience": "backoff, timeout",
    "piece": "chunk, block, slice", "pieces": "chunks, blocks, slices",
    "place": "remote_location, local_index, position, slot", "placer": "recv_buffer_callback",
    "question": "rpc_request", "questions": "rpc_requests",
    "readiness": "rtr",
    "receipt": "recv_request",
    "rendezvous": "node_barrier",
    "room": "space, capacity, buffer_half", "rooms": "modules",
    "settle": "wait_all_arrived, flush", "unsettled": "unflushed",
    "ship": "transmit",
    "spanning": "two_level",
    "speaker": "call_leader", "speaks": "is_call_leader",
    "straight": "zero_copy",
    "stranger": "unauthenticated connection", "strangers": "unauthenticated connections",
    "stretch": "range", "stretches": "ranges",
    "successor": "superseded_by",
    "taker": "frame_handler",
    "tell": "send, report", "told": "sent, reported",
    "thank": "ack",
    "tiny": "inline_data",
    "traffic": "iface",
    "unnamed": "implicit",
    "vacant": "free",
    "verdict": "delayed_abort, outcome",
    "visitors": "active_calls",
    "way": "path, protocol, dir", "ways": "paths, protocols",
    "welcome": "conn_ack",
    "window": "arena",
    "withdraw": "cancel, invalidate",
}

# Names that keep such a part, and why.
ALLOWED_NAMES = {
    # flow control and TCP
    "ack_window", "window_bytes", "begin_window",
    # MPI's term
    "in_place", "in_place_", "is_in_place", "reduce_block_in_place",
    # the C++ library's and clang's own names
    "compare_three_way", "question",
}

# Words in comments, messages and pages, and what to use instead.
SENTENCES = [
    (r"\brendezvous\b(?! protocol)", "barrier (the rendezvous protocol, RTS and CTS, keeps its name)"),
    (r"\b(letters?)\b(?! (of|and digits|from|or))", "tagged message"),
    (r"\b(mailbox|inbox)(es)?\b", "matcher, match queue"),
    (r"\bspeakers?\b", "call leader"),
    (r"\bstrangers?\b", "unauthenticated connection"),
    (r"\b(objections?)\b", "veto"),
    (r"\bmeetings?\b", "round, barrier"),
    (r"(?<!loop )\bnests?\b", "coalescer"),
    (r"\b(naps?|napping)\b", "idle wait, sleep"),
    (r"\bnudges?\b", "wake"),
    (r"\bnewcomers?\b", "pending connection"),
    (r"\bdeserters?\b", "premature exit"),
    (r"\bfarewells?\b", "shutdown"),
    (r"\battendance\b", "poller count"),
    (r"\bledgers?\b", "directory"),
    (r"\b[Nn]obody\b", "no rank, no thread, no process"),
    (r"\b[Ss]omebody\b", "a rank, a thread, a process"),
    (r"\b[Ee]verybody\b", "all ranks, all threads"),
    (r"\b[Ww]hoever\b", "the rank that, the thread that"),
    (r"(?<![\w`])Who\b(?! (is|are|may|can|owns)\b[^.]*\?)", "a noun as the subject"),
    (r"\b(is|are) no (an?)\b", "is not a"),
    (r"\bthe rooms? of the house\b", "the modules"),
]
SENTENCES = [(re.compile(pattern), instead) for pattern, instead in SENTENCES]

TOKEN = compiled(r"[A-Za-z_]\w*")
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def check_sentence(text, where, found):
    for pattern, instead in SENTENCES:
        for match in pattern.finditer(text):
            found.append((where(match.start()), match.group(0), instead))


def check_name(name, where, found):
    if name in ALLOWED_NAMES or name.isupper():
        return
    for part in PARTS.findall(name):
        if part.lower() in NAMES:
            found.append((where, name, NAMES[part.lower()]))
            return


def check_code(name, text, found):
    def line_at(offset):
        return f"{name}:{text.count(chr(10), 0, offset) + 1}"

    for match in TOKEN.finditer(text):
        token = match.group(0)
        if token.startswith(("//", "/*")):
            check_sentence(re.sub(r"`[^`]*`", lambda m: " " * len(m.group(0)), token),
                           lambda at, base=match.start(): line_at(base + at), found)
        elif token[0] in "\"'R" and not token.isidentifier():
            check_sentence(token, lambda at, base=match.start(): line_at(base + at), found)
        else:
            check_name(token, line_at(match.start()), found)


def check_page(name, text, found):
    """Pages without their blocks of code and what stands between backticks."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r"```.*?```", blank, text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", blank, text)
    check_sentence(text, lambda at: f"{name}:{text.count(chr(10), 0, at) + 1}", found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", action="store_true", help="how often each word occurs")
    parser.add_argument("paths", nargs="*", help="only files under these")
    options = parser.parse_args()
    found = []
    for name in tracked("src", "tools", "include", "llvm", "fortran"):
        if name.endswith((".h", ".hpp", ".c", ".cpp", ".cu")):
            check_code(name, (ROOT / name).read_text(encoding="utf-8"), found)
    for name in tracked("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs"):
        if name.endswith((".md", ".1", ".3", ".7")):
            check_page(name, (ROOT / name).read_text(encoding="utf-8"), found)
    if options.paths:
        found = [row for row in found if row[0].startswith(tuple(options.paths))]
    if options.count:
        for (word, instead), count in collections.Counter((row[1], row[2]) for row in found).most_common():
            print(f"{count:6} {word:30} {instead}")
    else:
        for where, word, instead in found:
            print(f"{where}: {word}: use {instead}", file=sys.stderr)
    print(f"words: {len(found)} places")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
