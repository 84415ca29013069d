"""Runs one command in a sandbox: `python -I -S launcher.py DESCRIPTOR COMMAND…`. Linux and standard library only.

DESCRIPTOR is an open file that contains the plan as JSON, written by `tools/sandbox/sandbox.py`. `kind` selects the
work: "namespaces" builds the sandbox here, "bubblewrap" starts inside an existing sandbox, "landlock" restricts the
command itself without namespaces.

In all three cases this process remains the parent of everything that the command starts (process 1 of a process
namespace, or a subreaper) and ends all of it. `control` is a pipe from the host: any byte asks the processes to end;
end-of-file means that the host has exited. `status` is a pipe to the host: the launcher writes a blank as soon as it
runs, and one JSON object at the end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing would add 10 ms to every command
if TYPE_CHECKING:
    from typing import Any

    from codecompanion.tools.sandbox.inside import confinement

    Plan = dict[str, Any]
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import confinement

GRACE_S = 0.4
"""Seconds that processes are given to end after SIGTERM; shorter than the host's wait (`tools/process.py`)."""
LEFT_S = 0.5
"""Seconds that background processes are given to end after the command has ended."""
WATCH_S = 0.2
"""Seconds between two measurements of memory and process count."""
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_CLONE_NEWNS, _CLONE_NEWCGROUP, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR, _AT_RECURSIVE, _MNT_DETACH = 442, 0x8000, 2
_PAGE = os.sysconf("SC_PAGE_SIZE")


# ---- building the sandbox


def _mount(
    source: str | None, target: str, kind: str | None = None, flags: int = 0, options: str | None = None
) -> None:
    libc = confinement.libc()
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    found = libc.mount(*words, ctypes.c_ulong(flags), None if options is None else os.fsencode(options))
    try:
        confinement.check(found)
    except OSError as error:
        raise OSError(error.errno, f"mount {target}: {error.strerror}") from None


def _set_flags(target: str, flags: int) -> None:
    """Add flags (1 = read-only, 2 = nosuid, 4 = nodev) to a mount and all mounts below it."""
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)
    confinement.system_call(
        _MOUNT_SETATTR, ctypes.c_int(-100), os.fsencode(target), ctypes.c_uint(_AT_RECURSIVE), attributes,
        ctypes.c_size_t(32),
    )  # fmt: skip


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def enter_namespaces(network: bool) -> None:
    """Leave the host's namespaces; the next child becomes process 1 of the new process namespace."""
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWIPC | _CLONE_NEWUTS | _CLONE_NEWCGROUP
    confinement.check(confinement.libc().unshare(flags if network else flags | _CLONE_NEWNET))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _place(base: str, path: str, is_folder: bool) -> str:
    """Return a path below the new root, after creating it in a private folder if it is missing there."""
    target = base + path
    if not os.path.lexists(target):
        os.makedirs(target if is_folder else os.path.dirname(target), exist_ok=True)
        if not is_folder:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    return target


def build_root(plan: Plan) -> None:
    """Build the sandbox's file system and enter it."""
    base = plan["base"]
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("/", base, None, _MS_BIND | _MS_REC)
    _set_flags(base, _MS_RDONLY | _MS_NOSUID)
    _make_devices(base + "/dev")
    _make_proc(base + "/proc", plan["processes"])
    apply_mounts(plan["mounts"], base)
    os.chdir(base)
    confinement.system_call(_PIVOT_ROOT[os.uname().machine], b".", b".")
    confinement.check(confinement.libc().umount2(b".", _MNT_DETACH))


def apply_mounts(mounts: list[tuple[str, str, str]], base: str) -> None:
    """Apply the mounts of the plan, parent folders first."""
    for operation, path, source in mounts:
        if operation == "overlay":
            _overlay(base + path, path, source)
            continue
        try:
            _place(base, path, operation == "empty_folder" or os.path.isdir(source))
        except OSError:
            if operation == "write":
                raise
            continue  # already removed: nothing to hide
        if operation == "empty_folder":
            _mount("tmpfs", base + path, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=64k")
        else:
            target = base + path
            _mount(source, target, None, _MS_BIND | _MS_REC)
            _set_flags(target, _MS_NOSUID | _MS_NODEV | (_MS_RDONLY if operation == "read" else 0))
    for operation, path, _ in mounts:  # its mount points exist at this point
        if operation == "empty_folder" and os.path.isdir(base + path):
            _mount(None, base + path, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _overlay(target: str, lower: str, private: str) -> None:
    """Redirect writes below a folder to a private copy; mount it read-only if the system has no overlays."""
    with contextlib.suppress(OSError):
        options = f"lowerdir={lower},upperdir={private}/upper,workdir={private}/work,userxattr"
        _mount("overlay", target, "overlay", _MS_NOSUID | _MS_NODEV, options)


def _make_devices(dev: str) -> None:
    _mount("tmpfs", dev, "tmpfs", _MS_NOSUID, "mode=0755,size=64k")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        os.close(os.open(f"{dev}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(f"/dev/{name}", f"{dev}/{name}", None, _MS_BIND)
    for name in ("shm", "pts"):
        os.mkdir(f"{dev}/{name}")
    _mount("tmpfs", f"{dev}/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")
    with contextlib.suppress(OSError):
        _mount("devpts", f"{dev}/pts", "devpts", _MS_NOSUID, "newinstance,ptmxmode=0666,mode=0620")
        os.symlink("pts/ptmx", f"{dev}/ptmx")
    for name, to in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{to}", f"{dev}/{name}")
    _mount(None, dev, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID)


def _make_proc(proc: str, processes: int) -> None:
    _mount("proc", proc, "proc", _MS_NOSUID | _MS_NODEV | 8)
    _guard_proc(proc, processes)


def _guard_proc(proc: str, processes: int) -> None:
    """Limit the number of processes; make kernel settings read-only, because root could change them in the sandbox.

    Since version 6.14, Linux has a process limit per PID namespace; the resource limit does not apply to root.
    """
    with contextlib.suppress(OSError, ValueError):
        if _version() >= (6, 14):
            _write(f"{proc}/sys/kernel/pid_max", str(max(400, 2 * processes)))
    for name in ("sys", "sysrq-trigger", "irq", "bus"):
        target = f"{proc}/{name}"
        if os.path.exists(target):
            _mount(target, target, None, _MS_BIND | _MS_REC)
            _set_flags(target, _MS_RDONLY)


def _version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(char for char in minor if char.isdigit()))


def start_loopback() -> None:
    """Bring up the loopback interface, the only one in this network, so that programs can reach each other."""
    import fcntl
    import socket
    import struct

    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sH22x", b"lo", 0x1 | 0x40))


def open_proxy(descriptor: int) -> None:
    """Open a listening socket, send it to the host's proxy, and point programs to it."""
    import socket

    with socket.socket(fileno=descriptor) as host, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        socket.send_fds(host, [b"p"], [listener.fileno()])
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        os.environ[name] = os.environ[name.lower()] = address
    os.environ["YARN_HTTP_PROXY"] = os.environ["YARN_HTTPS_PROXY"] = address
    os.environ["NODE_USE_ENV_PROXY"] = "1"


# ---- running the command


def _confine(plan: Plan) -> None:
    """Drop rights according to the plan and replace this process with the command."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    landlock = plan["kind"] == "landlock"
    confinement.limit_sizes(0 if landlock else 2 * plan["processes"])
    confinement.drop_capabilities()
    everything = 0xFFFF
    looking = confinement.READ_DIR
    reading = looking | confinement.READ_FILE | confinement.EXECUTE
    paths = [("/", looking)] if landlock else []
    paths += [(path, reading) for path in plan["readable"]] if landlock else []
    paths += [(path, everything) for path in plan["writable"]] if landlock else []
    confinement.restrict(paths, confinement.SCOPE_ABSTRACT | (confinement.SCOPE_SIGNAL if landlock else 0))
    families: tuple[int, ...] = confinement.ALL_FAMILIES
    if landlock:
        families = confinement.INTERNET_ALONE if plan["network"] else confinement.NO_FAMILY
    confinement.filter_system_calls(families)


def _start(plan: Plan, command: list[str]) -> tuple[int, int]:
    """Start the command; return its process and the read end of a pipe that reports a failed start."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tells)
        return pid, told
    try:
        os.chdir(plan["cwd"])
        _confine(plan)
        os.environ.update(plan["libraries"])
        os.execvpe(command[0], command, os.environ)  # noqa: S606 the shell is the command
    except BaseException as error:
        os.write(tells, str(error).encode())
    os._exit(127)


class Family:
    """All descendants of this process. `all_of_them`: this process is process 1 of a private process namespace."""

    def __init__(self, all_of_them: bool) -> None:
        self.all_of_them = all_of_them
        self._shared_before = _shared_bytes()

    def signal(self, number: int) -> None:
        """Send a signal to all descendants."""
        with contextlib.suppress(OSError):
            if self.all_of_them:
                os.kill(-1, number)
        if not self.all_of_them:
            for pid in self._stopped() if number == signal.SIGKILL else self.members():
                with contextlib.suppress(OSError):
                    os.kill(pid, number)

    def _stopped(self) -> set[int]:
        """Stop all descendants, including those started meanwhile; return their ids."""
        found: set[int] = set()
        while new := [pid for pid in self.members() if pid not in found]:
            for pid in new:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            found.update(new)
        return found

    def members(self) -> list[int]:
        """Return the process ids of all descendants."""
        if self.all_of_them:
            return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        found: list[int] = []
        open_ones = [os.getpid()]
        while open_ones:
            pid = open_ones.pop()
            with contextlib.suppress(OSError, ValueError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                        children = [int(word) for word in file.read().split()]
                    found += children
                    open_ones += children
        return found

    def excess(self, plan: Plan) -> str:
        """Return the limit that the processes together exceed, or "" if none."""
        members = self.members()
        if len(members) > plan["processes"]:
            return "processes"
        taken = max(0, _shared_bytes() - self._shared_before)
        for pid in members:
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
                words = file.read(200).split()
                taken += (int(words[1]) - int(words[2])) * _PAGE  # without shared memory
        return "memory" if taken > plan["memory_bytes"] else ""


def _shared_bytes() -> int:
    """Return the size of the machine's shared memory in bytes; part of it belongs to no process (`memfd`, tmpfs)."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo", "rb") as file:
        return int(file.read().split(b"Shmem:")[1].split()[0]) * 1024
    return 0


def _told(problem: str) -> Plan:
    return {"problem": problem}


def serve(plan: Plan, command: list[str], all_of_them: bool) -> None:
    """Run the command until it ends, end all processes it started, and report the result to the host."""
    control, status = plan["control"], plan["status"]
    wake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    main, failure = _start(plan, command)
    with os.fdopen(failure, "rb") as pipe:
        problem = pipe.read().decode("utf-8", "replace")
    for standard in (0, 1, 2):  # only the command keeps the output open, so it ends with the last of its processes
        os.dup2(os.open(os.devnull, os.O_RDWR), standard)
    family, told = Family(all_of_them), _told(problem)
    code: int | None = None
    left, kill_at, over_at = False, float("inf"), 0.0
    watched = [control, wake]
    while True:
        ready, _, _ = select.select(watched, [], [], WATCH_S)
        if wake in ready:
            os.read(wake, 512)
        now, is_over = time.monotonic(), False
        while True:
            try:
                pid, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                is_over = True
                break
            if pid == 0:
                break
            if pid == main:
                code, over_at = os.waitstatus_to_exitcode(how), now
        if is_over:
            break
        if control in ready:
            if not os.read(control, 16):  # the host has exited
                family.signal(signal.SIGKILL)
                watched = [wake]
            elif kill_at == float("inf"):
                family.signal(signal.SIGTERM)
                kill_at = now + GRACE_S
        if code is not None and kill_at == float("inf") and now >= over_at + LEFT_S:
            left, kill_at = True, now + GRACE_S
            family.signal(signal.SIGTERM)
        if now >= kill_at:
            family.signal(signal.SIGKILL)
        if excess := family.excess(plan):
            told["excess"] = excess
            family.signal(signal.SIGKILL)
    told.update(code=code, left=left)
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(told).encode())


def main(plan: Plan, command: list[str]) -> None:
    """Build the parts of the sandbox that the plan requests, and run the command in it."""
    for descriptor in (plan["control"], plan["status"], *([plan["proxy"]] if plan["proxy"] >= 0 else [])):
        os.set_inheritable(descriptor, False)
    os.write(plan["status"], b" ")
    kind = plan["kind"]
    if kind == "landlock":
        confinement.prctl(confinement.PR_SET_SUBREAPER, 1)
        confinement.prctl(confinement.PR_SET_DUMPABLE, 0)
        serve(plan, command, False)
        return
    if kind == "bubblewrap":
        if plan["prepares"]:
            _guard_proc("/proc", plan["processes"])
            apply_mounts(plan["mounts"], "")
            confinement.check(confinement.libc().umount2(os.fsencode(plan["private"]), _MNT_DETACH))
        if plan["proxy"] >= 0:
            open_proxy(plan["proxy"])
        confinement.drop_capabilities()
        confinement.prctl(confinement.PR_SET_DUMPABLE, 0)
        serve(plan, command, True)
        return
    enter_namespaces(plan["network"])
    pid = os.fork()
    if pid:
        os.close(plan["control"])
        os.close(plan["status"])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _, how = os.waitpid(pid, 0)
        os._exit(max(0, os.waitstatus_to_exitcode(how)))
    confinement.prctl(confinement.PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        build_root(plan)
        if not plan["network"]:
            start_loopback()
        if plan["proxy"] >= 0:
            open_proxy(plan["proxy"])
        os.chdir(plan["cwd"])
    except OSError as error:
        os.write(plan["status"], json.dumps({"problem": str(error), "code": None, "left": False}).encode())
        os._exit(1)
    confinement.drop_capabilities()
    confinement.prctl(confinement.PR_SET_PDEATHSIG, signal.SIGKILL)
    confinement.prctl(confinement.PR_SET_DUMPABLE, 0)
    serve(plan, command, True)
    os._exit(0)


if __name__ == "__main__":
    with open(int(sys.argv[1]), "rb") as file:
        file.seek(0)
        plan = json.load(file)
    main(plan, sys.argv[2:])
