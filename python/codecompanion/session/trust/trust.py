"""Decides whether a file that a folder provides may run or instruct the model.

Callers pass the hash of the content they are about to use, so a file cannot be swapped between check and use. Decisions
are stored in `trust.json` in the plugin's data folder, never in the folder concerned. The file is written atomically,
under a lock, and reread after every change, so that all Neovims agree. If it cannot be read, nothing is trusted.
Decisions about a folder's files made with Neovim's own `:trust` apply too, whether they allow or deny.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.session.trust.command_runs import CommandRuns
from codecompanion.session.trust.decisions import Decisions, FileHash, TrustedFile, TrustedFolder, whole_folder
from codecompanion.session.trust.folders import covers, folder_of, identity_of, is_listed

_log = logging.getLogger(__name__)

FILE = "trust.json"
RUNS_FILE = "command-runs.json"
MAX_BYTES = 8_000_000
LOCK_LIMIT_S = 5.0
DENIED = "!"

Why = Literal["", "user", "setup", "off"]
"""The reason for trust: "" (not trusted), the user's decision, `trust.folders`, or `trust.enabled` being false."""


class Trust:
    """Checks and stores the trust decisions of one user; if `file` is None, only in memory.

    `neovim`: the file in which Neovim stores `:trust` decisions. Methods that are not coroutines block briefly.
    """

    def __init__(
        self,
        file: Path | None = None,
        *,
        enabled: bool = True,
        folders: Iterable[str] = (),
        neovim: Path | None = None,
        report: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.enabled, self.patterns = enabled, tuple(folders)
        self._file, self._neovim, self._report = file, neovim, report
        self._runs = CommandRuns(file.with_name(RUNS_FILE) if file is not None else None)
        self._known = Decisions()
        self._by_commands: tuple[Decisions, frozenset[FileHash]] = (self._known, frozenset())
        self._stamp: tuple[int, int, int] = (0, 0, 0)
        self.problem = ""
        """Reason the decisions file cannot be read, or ""."""
        self._version = 0
        self._by_neovim: tuple[tuple[int, int, int], Mapping[str, str]] = ((0, 0, 0), {})

    # ---- queries

    def is_trusted(self, root: Path) -> bool:
        """Return whether the folder of a workspace is trusted as a whole."""
        return self.why(folder_of(root)) != ""

    def why(self, folder: Path) -> Why:
        """Return why a folder (`folder_of`) is trusted, or ""."""
        if not self.enabled:
            return "off"
        decision = self.decisions().folder(folder)
        if decision is not None and decision.by == "user" and _is_same(decision, folder):
            return "user"
        return "setup" if is_listed(folder, self.patterns) else ""

    def allows(self, root: Path, path: Path, sha256: str, *, runs: bool = False) -> bool:
        """Return whether a chat in `root` may use a file with this content. `runs`: the file starts programs."""
        if not self.enabled:
            return True
        folder, real = folder_of(root), Path(os.path.realpath(path))
        if self._neovim_trust(real) == DENIED and covers(folder, real):
            return False
        if self._allows_file(folder, real, sha256):
            return True
        why = self.why(folder)
        if not why or not covers(folder, real) or self.is_by_command(real, sha256):
            return False
        if not runs:
            return True
        decision = self.decisions().folder(folder)
        return decision is not None and decision.by == why and FileHash(str(real), sha256) in decision.programs

    def is_by_command(self, real: Path, sha256: str) -> bool:
        """Return whether a command wrote this content and the user has not trusted the file since."""
        decisions, file = self.decisions(), FileHash(str(real), sha256)
        if self._by_commands[0] is not decisions:
            self._by_commands = decisions, frozenset(decisions.by_commands)
        written = self._by_commands[1]
        if written and (file in written or any(whole_folder(folder) in written for folder in real.parents)):
            return True
        return self._runs.wrote(file)

    def _allows_file(self, folder: Path, real: Path, sha256: str) -> bool:
        if self.decisions().allows(folder, str(real), sha256):
            return True
        return covers(folder, real) and self._neovim_trust(real) == sha256

    def decisions(self) -> Decisions:
        """Return the current decisions, made in any Neovim."""
        if self._file is None:
            return self._known
        stamp = _stamp_of(self._file)
        if stamp != self._stamp:
            self._known, self.problem = self._read(self._file)
            self._stamp = stamp
            self._version += 1
        return self._known

    def version(self) -> int:
        """Return a number that changes with every change of the decisions."""
        self.decisions()
        return self._version

    def is_first_sight(self, root: Path) -> bool:
        """Return whether `trust.folders` lists the folder and its programs have not been recorded yet."""
        folder = folder_of(root)
        if self.why(folder) not in ("setup", "off"):
            return False
        decision = self.decisions().folder(folder)
        return decision is None or decision.by != "setup" or not _is_same(decision, folder)

    # ---- decisions

    async def trust_folder(
        self,
        folder: Path,
        programs: Iterable[FileHash] = (),
        *,
        identity: str = "",
        by: Literal["user", "setup"] = "user",
    ) -> None:
        """Trust a folder (`folder_of`) and its files that start programs (`programs`), as shown to the user.

        `identity`: the identity of the folder that was shown, "" = the current one.

        Raises: InputError: another folder has replaced it, or the decision cannot be stored.
        """
        now = await asyncio.to_thread(identity_of, folder)
        if identity and now != identity:
            raise InputError(f"{folder} was replaced by another folder; review it again.")
        trusted = TrustedFolder(str(folder), by, now, tuple(programs), _today())
        await self._change(lambda known: known.with_folder(trusted))
        if by == "user":
            await self._change_runs(lambda: self._runs.trust(folder))

    async def trust_files(self, folder: Path, files: Iterable[FileHash]) -> None:
        """Trust files with the content shown to the user, for chats in one folder; raises `InputError`."""
        trusted = [TrustedFile(one.path, one.sha256, str(folder), _today()) for one in files]
        await self._change(lambda known: known.with_files(trusted))

    async def note_commands(self, files: Iterable[FileHash]) -> None:
        """Record instruction files that a command wrote; their folder's trust does not cover them.

        Raises: InputError: the decision cannot be stored.
        """
        written = tuple(files)
        await self._change(lambda known: known.with_commands(written))

    async def note_command_start(self, folder: Path, token: str, trusted: Iterable[FileHash]) -> None:
        """Record that a command starts in a folder; `trusted`: instruction files trusted before it runs."""
        await self._change_runs(lambda: self._runs.begin(folder, token, trusted))

    async def note_command_end(self, folder: Path, token: str) -> None:
        """Record that the command has ended."""
        await self._change_runs(lambda: self._runs.end(folder, token))

    async def silence(self, folder: Path, waiting: str) -> None:
        """Silence the reminder about these waiting files of a folder; raises `InputError`."""
        await self._change(lambda known: known.with_silence(folder, waiting))

    async def revoke(self, path: Path) -> bool:
        """Remove the decisions about a folder or a file; return whether there were any; raises `InputError`."""
        before = await asyncio.to_thread(self.decisions)
        await self._change(lambda known: known.without(path))
        return before.without(path) != before

    # ---- the file

    async def _change(self, change: Callable[[Decisions], Decisions]) -> None:
        if self._file is None:
            self._known = change(self._known)
            self._version += 1
            return
        from codecompanion.adapters.file_lock import locked

        lock = self._file.with_name(self._file.name + ".lock")
        try:
            async with locked(lock, LOCK_LIMIT_S):
                await asyncio.to_thread(self._write, self._file, change)
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or "another Neovim is writing to it"
            raise InputError(f"Decision not saved: cannot write to {self._file} ({why}).") from error

    async def _change_runs(self, change: Callable[[], None]) -> None:
        from codecompanion.adapters.file_lock import locked

        lock = self._runs.lock
        try:
            async with locked(lock, LOCK_LIMIT_S) if lock is not None else contextlib.nullcontext():
                await asyncio.to_thread(change)
        except (OSError, TimeoutError) as error:
            _log.warning("%s cannot be written: %s", RUNS_FILE, error)

    def _write(self, file: Path, change: Callable[[Decisions], Decisions]) -> None:
        from codecompanion.store.durable_files import write_durably

        self._stamp = (0, 0, 0)
        before = self.decisions()
        after = change(before)
        if after == before:
            return
        if self.problem:
            file.replace(file.with_name(file.name + ".damaged"))
        write_durably(file, msgspec.json.format(msgspec.json.encode(after), indent=2) + b"\n")
        self.decisions()

    def _read(self, file: Path) -> tuple[Decisions, str]:
        """Return the decisions in a file and "".

        If it cannot be read, no decisions and the reason (already reported).
        """
        try:
            if file.stat().st_size > MAX_BYTES:
                raise ValueError("it is too large")
            return typed.read_json(file.read_bytes(), type=Decisions), ""
        except FileNotFoundError:
            return Decisions(), ""
        except (OSError, ValueError, *NOT_READABLE) as error:
            why = getattr(error, "strerror", None) or "it is damaged"
            problem = f"No folder is trusted: {file} cannot be read ({why}). The next trust decision starts a new file."
            self._report(problem)
            return Decisions(), problem

    def _neovim_trust(self, real: Path) -> str:
        """Return the hash that `:trust` has stored for a file, `DENIED` if it was denied, or "" if it is unknown."""
        if self._neovim is None:
            return ""
        stamp = _stamp_of(self._neovim)
        if stamp != self._by_neovim[0]:
            self._by_neovim = stamp, _read_neovim(self._neovim)
        return self._by_neovim[1].get(str(real), "")


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 that identifies trusted content."""
    return hashlib.sha256(content).hexdigest()


def _is_same(decision: TrustedFolder, folder: Path) -> bool:
    return decision.identity != "" and decision.identity == identity_of(folder)


def _stamp_of(file: Path) -> tuple[int, int, int]:
    try:
        status = file.stat()
    except OSError:
        return (1, 0, 0)
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read_neovim(file: Path) -> Mapping[str, str]:
    """Read Neovim's list of trusted files as path → hash; each line is `hash path` or `! path` (`vim.secure`)."""
    try:
        text = file.read_bytes()[:MAX_BYTES].decode("utf-8", "surrogateescape")
    except OSError:
        return {}
    # Split only at "\n", as Neovim does: a path may contain other characters that Python treats as line breaks.
    found = (line.split(" ", 1) for line in text.split("\n"))
    return {line[1]: line[0] for line in found if len(line) > 1}


def _today() -> str:
    return datetime.datetime.now().astimezone().date().isoformat()
