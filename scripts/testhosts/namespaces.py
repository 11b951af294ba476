# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linux namespaces from Python: enough of unshare(2), setns(2), mount(2) and prctl(2).

Python 3.12 has the first two, Debian 12 has not; and unshare(1) passes no signals on.
"""
import ctypes
import os

NEW_MOUNT = 0x00020000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1
# What makes a host, in the order of entering: the mount namespace last but one, since the files of
# the others are found through /proc of the one before.
HOST_KINDS = ("ipc", "uts", "net", "mnt", "pid")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name, *arguments):
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def unshare(flags):
    _call("unshare", flags)


def setns(fd):
    _call("setns", fd, 0)


def mount(source, target, kind="", flags=0, data=""):
    def text(word):
        return os.fsencode(word) if word else None
    try:
        _call("mount", text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data))
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({kind or 'bind'} on {target})") from error


def die_with_parent(signal_number):
    _call("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number))


def open_namespaces(pid, kinds=HOST_KINDS):
    """[descriptor] of the namespaces of a process"""
    return [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]


def become_root_of_new_user_namespace(further):
    """Inside, the caller is root over the other new namespaces (`further`), and itself outside."""
    user, group = os.geteuid(), os.getegid()
    unshare(NEW_USER | further)
    for file, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{file}", "w") as stream:
            stream.write(text)
