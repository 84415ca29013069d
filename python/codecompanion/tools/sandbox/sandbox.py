"""Selects the kind of sandbox this system supports, and builds command lines that run programs in it.

Kinds in order of preference: `bubblewrap` if it is installed and works, `namespaces` created by our launcher, and
`landlock` with a system call filter where the system forbids namespaces; on macOS `sandbox-exec`. Each is tested once
with a command that tries to write and read outside; a kind that fails the test is not used.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from codecompanion.formats.find_program import find_program, own_search_path, written_by_commands
from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.sandbox import mount_plan

if TYPE_CHECKING:
    from codecompanion.tools.sandbox.confined import Confined, Kind, Pipes

LINUX_KINDS: Final[tuple[Kind, ...]] = ("bubblewrap", "namespaces", "landlock")
MAX_PROCESSES = 4096
_MEMORY_SHARE = 0.75
"""Maximum share (0..1) of the machine's memory for all processes of a command together."""
_LAUNCHER = Path(__file__).with_name("inside") / "launcher.py"
_DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"))
_TO_PREPARE: Final = ("--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_DAC_OVERRIDE")
"""Rights within its namespace that the launcher needs to mount cache copies; it drops them before the command starts.
"""
_INSIDE: Final = "/run/codecompanion"
PYTHON = str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_NOT_STOPPED: Final[Mapping[Kind, str]] = {
    "landlock": "a command can see the names of hidden files and other processes, change the modes and times of"
    " your files, and change the git configuration in the workspace",
}


class Sandbox:
    """The sandbox for all commands of a host. Its methods read the disk and start programs: call them in a thread."""

    def __init__(
        self,
        settings: SandboxSettings,
        private: Path | None = None,
        hidden: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        kinds: Sequence[Kind] | None = None,
    ) -> None:
        """Set the folder for temporary files and caches of commands (`private`) and the plugin's folders (`hidden`).

        `kinds` replaces the kinds to test on this system.
        """
        self.settings = settings
        self._private, self._hidden = private, tuple(hidden)
        self._environment = os.environ if environment is None else environment
        if kinds is None:
            kinds = LINUX_KINDS if sys.platform.startswith("linux") else ()
            kinds = ("sandbox-exec",) if sys.platform == "darwin" else kinds
        self._kinds, self._lock = tuple(kinds), threading.Lock()
        self._found: Kind | None = None
        self._overlays = False
        self.failures: dict[Kind, str] = {}
        """For each tested kind that does not work here, the reason."""

    # ---- selection of the kind

    @property
    def kind(self) -> Kind:
        """Return the kind in use, or "" if none works; the first call tests the kinds in less than a second."""
        if self.settings.mode == "off":
            return ""
        with self._lock:
            if self._found is None:
                ways = [(kind, kind in ("bubblewrap", "namespaces")) for kind in self._kinds]
                if "bubblewrap" in self._kinds:
                    # For ordinary users, bubblewrap 0.8 cannot mount cache copies, without which many builds fail, so
                    # our own namespaces are better.
                    ways.insert(len(ways) - ("landlock" in self._kinds), ("bubblewrap", False))
                found: Kind = next((kind for kind, overlays in ways if self._works(kind, overlays=overlays)), "")
                self._found = found
            return self._found

    @property
    def refuses(self) -> str:
        """Return why no command may run; "" means that commands may run."""
        if self.settings.mode != "required" or self.kind:
            return ""
        return f'Commands need a sandbox (`sandbox = "required"`), and this system has none: {self.why_none()}.'

    def why_none(self) -> str:
        """Return why there is no sandbox, as a clause."""
        if self.settings.mode == "off":
            return "it is switched off"
        if not self._kinds:
            return f"none is available for {sys.platform}"
        return "; ".join(f"{kind}: {why}" for kind, why in self.failures.items())

    @property
    def limits_hosts(self) -> bool:
        """Return whether a command's network access can be limited to certain hosts.

        This needs a private network namespace, and no proxy set by the user.
        """
        has_proxy = any(self._environment.get(name) for name in _PROXIES)
        return self.kind in ("bubblewrap", "namespaces") and not has_proxy

    def not_stopped(self) -> str:
        """Return the actions that the kind in use does not prevent, as a clause, or ""."""
        return _NOT_STOPPED.get(self.kind, "")

    def _works(self, kind: Kind, *, overlays: bool) -> bool:
        from codecompanion.tools.sandbox.probe import why_not  # its imports are not needed before the first command

        self._overlays = overlays
        why = why_not(kind, self._confined, self.home, self._needed(), self._environment)
        if why:
            self.failures[kind] = why
        return not why

    # ---- running a command in it

    def confine(
        self, argv: Sequence[str], root: Path, cwd: Path, environment: Mapping[str, str], pipes: Pipes, *, network: bool
    ) -> Confined:
        """Return the command line and environment that run a program in the sandbox."""
        places = self._places(root)
        with contextlib.suppress(OSError):  # if the folder were missing, a command could create it
            git = root / ".git"
            if mount_plan.rights_in_root(places) == "write" and not git.is_symlink() and (git / "HEAD").is_file():
                (git / "hooks").mkdir(exist_ok=True)
        written_by_commands(*map(Path, mount_plan.written_places(places)))
        return self._confined(self.kind, tuple(argv), places, cwd, network, pipes, environment)

    def only_reads(self, root: Path) -> bool:
        """Return whether a workspace, such as the home folder, is read-only for commands."""
        places = self._places(root)
        return str(places.root.resolve()) not in mount_plan.written_places(places, with_mounts=self.kind != "landlock")

    def hides(self, root: Path, name: str) -> bool:
        """Return whether a path in the tables (`~/.ssh`) exists but is hidden from a workspace's commands."""
        return mount_plan.is_hidden(name, self._places(root))

    def _places(self, root: Path) -> mount_plan.Places:
        return mount_plan.Places(
            root=root, home=self.home, private=self.private_folder(root), environment=self._environment,
            hidden=self._hidden, write=self.settings.write, read=self.settings.read, needed=self._needed(),
        )  # fmt: skip

    def private_folder(self, root: Path) -> Path:
        """Return the workspace's folder for temporary files and cache copies; create it if missing."""
        import hashlib
        import tempfile

        name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
        if self._private is not None:
            with contextlib.suppress(OSError):
                return _made(self._private / name)
        self._private = Path(tempfile.mkdtemp(prefix="codecompanion-sandbox-"))  # the data folder is not writable
        return _made(self._private / name)

    @property
    def home(self) -> Path:
        """Return the user's home folder."""
        return Path(self._environment.get("HOME") or "~").expanduser().resolve()

    def _needed(self) -> tuple[Path, ...]:
        """Return the paths that the launcher needs even if they are hidden: its own folder and its Python's folder."""
        return (
            (_LAUNCHER.parent, Path(sys.base_prefix)) if str(Path(sys.base_prefix)) != "/usr" else (_LAUNCHER.parent,)
        )

    def _confined(
        self,
        kind: Kind,
        argv: tuple[str, ...],
        places: mount_plan.Places,
        cwd: Path,
        network: bool,
        pipes: Pipes,
        environment: Mapping[str, str],
    ) -> Confined:
        kept = {name: value for name, value in environment.items() if name not in mount_plan.variables_left_out()}
        if not network and pipes.proxy < 0:
            kept |= mount_plan.variables_without_network()
        from codecompanion.tools.sandbox.confined import Confined  # not needed at startup

        if kind == "sandbox-exec":
            temporary = str(places.private / "tmp")
            from codecompanion.tools.sandbox.macos import profile  # not needed at startup

            text = profile(places, network=network)
            return Confined(("/usr/bin/sandbox-exec", "-p", text, *argv), {**kept, "TMPDIR": temporary})
        for name in ("tmp", "root", "caches"):
            (places.private / name).mkdir(exist_ok=True)
        kept, of_command = _without_libraries(kept, places.root)
        told: dict[str, object] = {
            "kind": kind, "network": network, "cwd": str(cwd), "control": pipes.control, "status": pipes.status,
            "proxy": pipes.proxy, "processes": MAX_PROCESSES, "memory_bytes": _memory_limit(),
            "libraries": of_command,
        }  # fmt: skip
        if kind == "landlock":
            told["readable"] = mount_plan.readable_without_namespaces(places)
            written = mount_plan.written_places(places, with_mounts=False)
            told["writable"] = [str(places.private / "tmp"), *_DEVICES, *written]
            temporary = str(places.private / "tmp")
            caches = mount_plan.cache_variables(places, temporary, overlays=False)
            return Confined(_launched(told, argv, pipes.plan), {**kept, **caches, "TMPDIR": temporary})
        overlays = kind == "namespaces" or self._overlays
        mounts = _with_empty_file(mount_plan.mounts(places, overlays=overlays), places.private)
        for mount in mounts:
            if mount.operation == "overlay":
                for name in ("upper", "work"):
                    (Path(mount.source) / name).mkdir(parents=True, exist_ok=True)
        kept = {**kept, **mount_plan.cache_variables(places, "/tmp", overlays=overlays), "TMPDIR": "/tmp"}  # noqa: S108 a folder of the sandbox
        if kind == "namespaces":
            told |= {"base": str(places.private / "root"), "mounts": [_listed(mount) for mount in mounts]}
            return Confined(_launched(told, argv, pipes.plan), kept)
        inner = _inner_mounts(mounts, places.private) if self._overlays else []
        told |= {"private": _INSIDE, "mounts": inner, "prepares": self._overlays}
        program = find_program("bwrap", search_path=self._environment.get("PATH", ""), of_root=True)
        outer = _bubblewrap(program, mounts, places.private, cwd, network=network, prepares=self._overlays)
        return Confined((*outer, *_launched(told, argv, pipes.plan)), kept)


def _without_libraries(environment: Mapping[str, str], root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Split the environment into the launcher's variables and those that select the command's libraries.

    The launcher and bubblewrap start in the workspace outside the sandbox, and must not load libraries from there.
    """
    of_command = {name: value for name, value in environment.items() if name.startswith("LD_") or name == "GCONV_PATH"}
    kept = {name: value for name, value in environment.items() if name not in of_command}
    if own := own_search_path(of_command.get("LD_LIBRARY_PATH", ""), root):
        kept["LD_LIBRARY_PATH"] = own
    return kept, of_command


def _made(folder: Path) -> Path:
    for name in ("tmp", "root", "caches"):
        (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder.resolve()


def _launched(told: Mapping[str, object], argv: tuple[str, ...], plan: int) -> tuple[str, ...]:
    """Write the plan to the launcher's file and return the launcher's command line."""
    with open(plan, "wb", closefd=False) as file:
        file.write(msgspec.json.encode(told))
    return (PYTHON, "-I", "-S", str(_LAUNCHER), str(plan), *argv)


def _listed(mount: mount_plan.Mount) -> tuple[str, str, str]:
    return mount.operation, mount.path, mount.source


def _with_empty_file(mounts: Sequence[mount_plan.Mount], private: Path) -> list[mount_plan.Mount]:
    empty = private / "empty"
    empty.touch(mode=0o444)
    return [
        mount_plan.Mount("read", mount.path, str(empty)) if mount.operation == "empty_file" else mount
        for mount in mounts
    ]


def _inner_mounts(mounts: Sequence[mount_plan.Mount], private: Path) -> list[tuple[str, str, str]]:
    """Return the mounts that the launcher adds inside bubblewrap: cache copies, and the hidden paths within them."""
    overlays = [mount.path for mount in mounts if mount.operation == "overlay"]
    inner = [
        mount
        for mount in mounts
        if mount.operation == "overlay" or any(mount.path.startswith(f"{path}/") for path in overlays)
    ]
    return [(mount.operation, mount.path, mount.source.replace(str(private), _INSIDE, 1)) for mount in inner]


def _bubblewrap(
    program: str, mounts: Sequence[mount_plan.Mount], private: Path, cwd: Path, *, network: bool, prepares: bool
) -> tuple[str, ...]:
    """Return the bubblewrap part of the command line.

    `prepares`: the launcher first mounts cache copies inside the sandbox.
    """
    found = [
        program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        *(() if network else ("--unshare-net",)),
        "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", *(_TO_PREPARE if prepares else ()),
        "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
    ]  # fmt: skip
    for path in () if prepares else ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"):
        if Path(path).exists():  # bubblewrap leaves them writable for root; the launcher protects them
            found += ["--ro-bind", path, path]
    empty: list[str] = []
    for mount in mounts:
        if mount.operation == "empty_folder":
            found += ["--tmpfs", mount.path]
            empty.append(mount.path)
        elif mount.operation == "read":
            found += ["--ro-bind", mount.source, mount.path]
        elif mount.operation == "write":
            found += ["--bind", mount.source, mount.path]
    if prepares:
        found += ["--bind", str(private), _INSIDE]
    for path in empty:
        found += ["--remount-ro", path]
    return (*found, "--chdir", str(cwd), "--")


def _memory_limit() -> int:
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * _MEMORY_SHARE)
