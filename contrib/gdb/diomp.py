# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pretty-printers of gdb for DiOMP's types.

    (gdb) source contrib/gdb/diomp.py

Ranks print as "world rank 3", a result as its value or as the error's sentence, a completion as the number of its
outstanding operations, an event as the state of its transfer.
"""
import re

import gdb
import gdb.printing


def pointer_of(unique):
    """The pointer in a std::unique_ptr, which is all that it holds with the default deleter."""
    held = unique.type.strip_typedefs().template_argument(0).pointer()
    return unique.address.cast(held.pointer()).dereference()


def atomic_value(atomic):
    """The value in a std::atomic of libstdc++ or libc++."""
    for name in ("_M_i", "__a_"):
        try:
            return atomic[name]
        except gdb.error:
            continue
    return atomic


class id_printer:
    """diomp::id<Tag>: the tag's name and the number."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        tag = re.search(r"(\w+)_tag", str(self.value.type.strip_typedefs()))
        number = int(self.value["value_"])
        return f"{tag.group(1).replace('_', ' ') if tag else 'id'} {number if number >= 0 else 'none'}"


class error_printer:
    """diomp::error: code and sentence."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        if self.value.address is None:
            return "an error that is not in memory"
        detail = pointer_of(self.value["detail_"])
        if int(detail) == 0:
            return "no error"
        text = detail.dereference()
        remedy = text["remedy"].format_string()
        return f"{text['code']}: {text['message'].format_string()}" + (f" [remedy: {remedy}]" if remedy not in ('""', "") else "")


class result_printer:
    """diomp::result<T>: the value, or the error."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        failure = error_printer(self.value["error_"]).to_string()
        if failure != "no error":
            return failure
        if not any(field.name == "value_" for field in self.value.type.strip_typedefs().fields()):
            return "success"
        return f"success: {self.value['value_'].format_string()}"


class completion_printer:
    """diomp::transport::completion: outstanding operations and the first failure."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        pending, failure = int(atomic_value(self.value["pending"])), int(atomic_value(self.value["failure"]))
        return ("done" if pending == 0 else f"{pending} outstanding") + (f", failed with {failure}" if failure else "")


def printers():
    made = gdb.printing.RegexpCollectionPrettyPrinter("diomp")
    made.add_printer("id", r"^diomp::id<", id_printer)
    made.add_printer("error", r"^diomp::error$", error_printer)
    made.add_printer("result", r"^diomp::result<", result_printer)
    made.add_printer("completion", r"^diomp::transport::completion$", completion_printer)
    return made


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
