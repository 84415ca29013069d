"""A program started in a sandbox, and the pipes between the host and its launcher."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

Kind = Literal["bubblewrap", "namespaces", "landlock", "sandbox-exec", ""]


class Pipes(msgspec.Struct, frozen=True):
    """The launcher's descriptors: `control` tells it to end its processes, `status` reports how they ended.

    `plan` is an in-memory file with the sandbox plan: a single argument is limited to 128 KiB, and the readable paths
    of a large home folder need more. The launcher sends the proxy's listening socket (`host_proxy`) over `proxy`. -1
    means no descriptor.
    """

    control: int
    status: int
    plan: int = -1
    proxy: int = -1

    def inherited(self) -> tuple[int, ...]:
        """Return the descriptors that the launcher must inherit."""
        return tuple(one for one in (self.control, self.status, self.plan, self.proxy) if one >= 0)


class Confined(msgspec.Struct, frozen=True):
    """How to start a program in the sandbox."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


class Report(msgspec.Struct, frozen=True):
    """The launcher's final report: how the command ended, or why it could not start."""

    code: int | None = None
    left: bool = False
    excess: Literal["", "processes", "memory"] = ""
    problem: str = ""
    has_begun: bool = True


class Launcher:
    """The host's side of a launcher, created by `launcher_pipes`."""

    def __init__(self, *, with_proxy: bool) -> None:
        control, self._asks = os.pipe()
        self._told, status = os.pipe()
        os.set_blocking(self._told, False)
        plan = os.memfd_create("plan", os.MFD_CLOEXEC) if hasattr(os, "memfd_create") else -1
        self._proxy: socket.socket | None = None
        proxy = -1
        if with_proxy:
            self._proxy, theirs = socket.socketpair()
            proxy = theirs.detach()
        self.theirs = Pipes(control, status, plan, proxy)
        self._open = [*self.theirs.inherited(), self._asks, self._told]

    def ask_to_end(self) -> None:
        """Ask every process in the sandbox to end."""
        with contextlib.suppress(OSError):
            os.write(self._asks, b".")

    def report(self) -> Report | None:
        """Return how the command ended, or None if the launcher was killed before it could report."""
        try:
            said = os.read(self._told, 65_536)
            return typed.read_json(said, type=Report) if said else Report(has_begun=False)
        except (OSError, *NOT_READABLE):
            return None

    def proxy_listener(self, limit_s: float) -> socket.socket | None:
        """Return the listening socket that the launcher opened in the sandbox, or None if it ended first. Blocks."""
        if self._proxy is None:
            return None
        with contextlib.suppress(OSError):
            self._proxy.settimeout(limit_s)
            _, descriptors, _, _ = socket.recv_fds(self._proxy, 1, 1)
            if descriptors:
                return socket.socket(fileno=descriptors[0])
        return None

    def close_theirs(self) -> None:
        """Close the launcher's ends of the pipes, after it has inherited them or failed to start."""
        self._close(self.theirs.inherited())

    def close(self) -> None:
        """Close every descriptor; the launcher then kills the remaining processes."""
        self._close(tuple(self._open))
        if self._proxy is not None:
            self._proxy.close()

    def _close(self, descriptors: tuple[int, ...]) -> None:
        for one in descriptors:
            if one in self._open:
                self._open.remove(one)
                os.close(one)


@contextlib.contextmanager
def launcher_pipes(*, with_proxy: bool = False) -> Iterator[Launcher]:
    """Open the pipes to a launcher; close them on exit."""
    launcher = Launcher(with_proxy=with_proxy)
    try:
        yield launcher
    finally:
        launcher.close()
