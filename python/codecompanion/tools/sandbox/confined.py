"""A program as it is started in a sandbox, and how the host talks with the launcher there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

Kind = Literal["bubblewrap", "namespaces", "landlock", "sandbox-exec", ""]


class Pipes(msgspec.Struct, frozen=True):
    """The launcher's descriptors: `control` ends its processes, `status` reports how they ended.

    `plan` is a file in memory that the launcher reads the sandbox from: one argument holds 128 KiB at most, and the
    readable places of a large home folder take more. It is -1 on systems without our launcher.
    """

    control: int
    status: int
    plan: int

    def inherited(self) -> tuple[int, ...]:
        """Return the descriptors that the launcher must inherit."""
        return tuple(one for one in (self.control, self.status, self.plan) if one >= 0)


class Confined(msgspec.Struct, frozen=True):
    """A program as it is started in the sandbox."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


class Report(msgspec.Struct, frozen=True):
    """The launcher's last words: how the command ended, or why it could not start."""

    code: int | None = None
    left: bool = False
    excess: Literal["", "processes", "memory"] = ""
    problem: str = ""
    has_begun: bool = True


class Launcher:
    """The host's side of a launcher. Made by `launcher_pipes`."""

    def __init__(self) -> None:
        control, self._asks = os.pipe()
        self._told, status = os.pipe()
        os.set_blocking(self._told, False)
        plan = os.memfd_create("plan", os.MFD_CLOEXEC) if hasattr(os, "memfd_create") else -1
        self.theirs = Pipes(control, status, plan)
        self._open = [*self.theirs.inherited(), self._asks, self._told]

    def ask_to_end(self) -> None:
        """Ask everything in the sandbox to end."""
        with contextlib.suppress(OSError):
            os.write(self._asks, b".")

    def report(self) -> Report | None:
        """Return how the command ended, None when the launcher was killed before it could say."""
        try:
            said = os.read(self._told, 65_536)
            return msgspec.json.decode(said, type=Report) if said else Report(has_begun=False)
        except (OSError, msgspec.DecodeError):
            return None

    def close_theirs(self) -> None:
        """Close the descriptors that the launcher has inherited, or never will."""
        self._close(self.theirs.inherited())

    def close(self) -> None:
        """Close everything: the launcher kills what is left."""
        self._close(tuple(self._open))

    def _close(self, descriptors: tuple[int, ...]) -> None:
        for one in descriptors:
            if one in self._open:
                self._open.remove(one)
                os.close(one)


@contextlib.contextmanager
def launcher_pipes() -> Iterator[Launcher]:
    """Open the pipes to one launcher, and close them at the end."""
    launcher = Launcher()
    try:
        yield launcher
    finally:
        launcher.close()
