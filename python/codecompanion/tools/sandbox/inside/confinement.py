"""Permanently drops rights of this process: capabilities, system calls, files and resources. Linux, stdlib only.

`launcher.py` calls these functions just before the command starts, so this module imports nothing from the package.
Every function raises `OSError` if the system refuses. Sources: man 2 prctl, capset, seccomp; kernel documentation
userspace-api/landlock and userspace-api/seccomp_filter.
"""

import contextlib
import ctypes
import json
import os
import platform
import resource
import struct

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SUBREAPER = 1, 4, 36
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR = 24, 47, 4
_PR_SET_SECCOMP, _FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_CAPSET_VERSION = 0x20080522
_CAPSET_CALL = {"x86_64": 126, "aarch64": 91}
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CLONE_NEW = 0x7E020080
"""Combination of the flags CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_FS_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 0x4000 | 0x8000
SCOPE_ABSTRACT, SCOPE_SIGNAL = 1, 2


def check(result: int) -> int:
    """Return the result of a libc call, or raise its error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def prctl(option: int, value: int, third: int = 0) -> int:
    """Call prctl on this process (man 2 prctl) and return the result."""
    return check(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), 0, 0))


def system_call(number: int, *arguments: object) -> int:
    """Make the system call with this number and return its result."""
    _libc.syscall.restype = ctypes.c_long
    return check(_libc.syscall(ctypes.c_long(number), *arguments))


def libc() -> ctypes.CDLL:
    """Return the C library, with errno preserved."""
    return _libc


# ---- capabilities


def drop_capabilities() -> None:
    """Drop every capability for this process and for every program that it starts."""
    with contextlib.suppress(OSError):
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR)
    for number in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, number)
        except OSError:  # no such capability, or dropping is not permitted; then it cannot be gained either
            break
    header = struct.pack("Ii", _CAPSET_VERSION, 0)
    system_call(_CAPSET_CALL[platform.machine()], header, bytes(24))


# ---- system calls


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


_LOAD, _EQUAL, _SET, _AND, _RETURN, _AT_LEAST = 0x20, 0x15, 0x45, 0x54, 0x06, 0x35
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NUMBER, _MACHINE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32


def seccomp_program(machine: str, families: tuple[int, ...]) -> bytes:
    """Return the seccomp filter for a machine type; it lets a command open sockets only of these families."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "syscalls.json"), "rb") as file:
        table = json.load(file)
    ours = table["machines"][machine]
    calls = dict(ours["calls"])
    special = {name: calls.pop(name) for name in ("ioctl", "socket", "clone", "unshare")}
    parts = [
        struct.pack("HBBI", _LOAD, 0, 0, _MACHINE),
        _jump(_EQUAL, ours["audit"], 1, 0),
        _answer(_ENOSYS),
        struct.pack("HBBI", _LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":  # the x32 system calls
        parts += [_jump(_AT_LEAST, 0x40000000, 0, 1), _answer(_ENOSYS)]
    for number in (*calls.values(), *table["everywhere"].values()):
        parts += [_jump(_EQUAL, number, 0, 1), _answer(_EPERM)]
    for number in table["absent"].values():
        parts += [_jump(_EQUAL, number, 0, 1), _answer(_ENOSYS)]
    parts += _look(special["ioctl"], _SECOND, [
        part for number in (_TIOCSTI, _TIOCLINUX, _TIOCSETD) for part in (_jump(_EQUAL, number, 0, 1), _answer(_EPERM))
    ])  # fmt: skip
    for name in ("clone", "unshare"):
        parts += _look(special[name], _FIRST, [_jump(_SET, _CLONE_NEW, 0, 1), _answer(_EPERM)])
    allowed = [part for family in families for part in (_jump(_EQUAL, family, 0, 1), _allow())]
    parts += _look(special["socket"], _FIRST, [*allowed, _answer(_EAFNOSUPPORT)])
    return b"".join([*parts, _allow()])


def _answer(number: int) -> bytes:
    return struct.pack("HBBI", _RETURN, 0, 0, _ERRNO | number)


def _allow() -> bytes:
    return struct.pack("HBBI", _RETURN, 0, 0, _ALLOW)


def _look(number: int, argument: int, tests: list[bytes]) -> list[bytes]:
    """Return the filter instructions that allow a system call if one of its arguments passes the tests."""
    body = [struct.pack("HBBI", _LOAD, 0, 0, argument), *tests, _allow()]
    return [_jump(_EQUAL, number, 0, len(body)), *body]


def filter_system_calls(families: tuple[int, ...]) -> None:
    """Install the filter for this process and its children; setuid programs can no longer gain rights."""
    program = seccomp_program(platform.machine(), families)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer)), 16)
    prctl(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(header))


ALL_FAMILIES = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
INTERNET_ALONE = (_AF_INET, _AF_INET6, _AF_NETLINK)
NO_FAMILY: tuple[int, ...] = ()


# ---- files


def landlock_version() -> int:
    """Return the kernel's Landlock version; 0 means that Landlock is missing."""
    try:
        return system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except OSError:
        return 0


def restrict(paths: list[tuple[str, int]], scope: int) -> None:
    """Allow only the given rights below the given paths; without paths, restrict only the scope."""
    version = landlock_version()
    rights = _FS_RIGHTS[min(version, 5)] if version and paths else 0
    scope = scope if version >= 6 else 0
    if not rights and not scope:
        return
    attributes = struct.pack("QQQ", rights, 0, scope)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = system_call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    try:
        for path, allowed in paths:
            _allow_below(rules, path, allowed & rights)
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        system_call(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint(0))
    finally:
        os.close(rules)


def _allow_below(rules: int, path: str, allowed: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # the path was removed
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{place}"):
            allowed &= _FILE_RIGHTS
        if allowed:
            beneath = struct.pack("=Qi", allowed, place)
            system_call(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(1), beneath, ctypes.c_uint(0))
    finally:
        os.close(place)


# ---- sizes


def limit_sizes(processes: int) -> None:
    """Limit the number of processes; the launcher watches their total memory.

    Address space is not limited: sanitizers reserve 16 TB and use little of it. `processes` is the limit in a user
    namespace; 0 means no limit, because the user's other programs would count too.
    """
    bounds = [(resource.RLIMIT_CORE, 0)]
    for kind, amount in [*bounds, (resource.RLIMIT_NPROC, processes)] if processes else bounds:
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.getrlimit(kind)
            most = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
            resource.setrlimit(kind, (most, most))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")  # when memory runs out, kill the command before the editor
