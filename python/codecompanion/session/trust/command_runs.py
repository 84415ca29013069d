"""Records when and where commands ran, to recognise the files they wrote.

`session.untrusted.written_by_commands` compares a workspace's instruction files before and after a command. This module
covers the other cases: a chat reads the files while the command runs, the host is killed before the comparison, the
workspace is nested, or a later setting turns files into instructions. A file that changed while a command ran counts as
written by the command until the user trusts it. The time of the change is `st_ctime` (on Windows the creation time),
which programs cannot set.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.folders import covers

MAX_RUNS, MAX_FOLDERS, MAX_KEPT = 200, 500, 2_000
"""Maximum numbers of runs per folder, of folders, and of kept file hashes; excess runs are merged, closest together
first.
"""
MARGIN_NS = 20_000_000
"""Margin in ns: a file's timestamp may be up to one kernel tick (at most 10 ms) early."""
UNENDED_NS = 3_600 * 10**9
"""Time in ns for which a command counts as running if its host was killed."""


class Run(msgspec.Struct, frozen=True, array_like=True):
    """The start and end of a command, in ns since the epoch; `until` is 0 while it runs."""

    token: str
    since: int
    until: int = 0


class Known(msgspec.Struct, frozen=True):
    """The runs recorded per folder, when the user trusted folders (ns), and the files trusted before a run."""

    runs: Mapping[str, tuple[Run, ...]] = {}
    trusted: Mapping[str, int] = {}
    kept: tuple[FileHash, ...] = ()

    def with_run(self, folder: str, run: Run) -> Known:
        """Return the record with a run added or replaced."""
        runs = sorted((*(one for one in self.runs.get(folder, ()) if one.token != run.token), run), key=_since)
        while len(runs) > MAX_RUNS:
            pairs = enumerate(itertools.pairwise(runs))
            gaps = [(after.since - before.until, at) for at, (before, after) in pairs if before.until]
            if not gaps:
                break
            _, at = min(gaps)
            before, after = runs[at : at + 2]
            until = after.until and max(before.until, after.until)
            runs[at : at + 2] = [Run(after.token, before.since, until)]
        others = {name: known for name, known in self.runs.items() if name != folder}
        return msgspec.structs.replace(self, runs=dict([*others.items(), (folder, tuple(runs))][-MAX_FOLDERS:]))

    def with_kept(self, files: Iterable[FileHash]) -> Known:
        """Return the record with the files that were trusted before a command ran."""
        return msgspec.structs.replace(self, kept=tuple(dict.fromkeys((*self.kept, *files)))[-MAX_KEPT:])


class CommandRuns:
    """Stores the command runs of one user; if `file` is None, only in memory.

    Methods block briefly. Callers that change something hold `lock`, so that two Neovims do not lose a run.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._known = file, Known()
        self.lock = file.with_name(file.name + ".lock") if file is not None else None
        self._stamp: tuple[int, int] = (0, 0)
        self._running = set[str]()

    def begin(self, folder: Path, token: str, trusted: Iterable[FileHash]) -> None:
        """Record that a command begins.

        `trusted`: the instruction files that are trusted before it runs. Raises `OSError`.
        """
        self._running.add(token)
        with self._changing():
            run = Run(token, time.time_ns() - MARGIN_NS)
            self._known = self._read().with_run(os.path.realpath(folder), run).with_kept(trusted)

    def end(self, folder: Path, token: str) -> None:
        """Record that the command has ended; raises `OSError`."""
        name = os.path.realpath(folder)
        with self._changing():
            known = self._read()
            run = next((one for one in known.runs.get(name, ()) if one.token == token), None)
            if run is not None:
                self._known = known.with_run(name, msgspec.structs.replace(run, until=time.time_ns()))
        self._running.discard(token)

    def trust(self, folder: Path) -> None:
        """Record that the user trusts a folder as it is now; raises `OSError`."""
        with self._changing():
            known = self._read()
            trusted = {**known.trusted, str(folder): time.time_ns()}
            self._known = msgspec.structs.replace(known, trusted=dict([*trusted.items()][-MAX_FOLDERS:]))

    def wrote(self, file: FileHash) -> bool:
        """Return whether a file (real path) changed during a command run since the user last trusted its folder."""
        known = self._read()
        above = [str(folder) for folder in Path(file.path).parents if str(folder) in known.runs]
        if not above or file in known.kept:
            return False
        try:
            changed = os.stat(file.path).st_ctime_ns  # noqa: PTH116 (asked often)
        except OSError:
            return False
        real = Path(file.path)
        if any(changed <= known.trusted.get(str(one), 0) and covers(one, real) for one in real.parents):
            return False
        return any(run.since <= changed <= self._until(run) for folder in above for run in known.runs[folder])

    def _until(self, run: Run) -> int:
        return run.until or (time.time_ns() if run.token in self._running else run.since + UNENDED_NS)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        from codecompanion.store.durable_files import write_whole

        yield
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self._file, msgspec.json.encode(self._known), flush=False)

    def _read(self) -> Known:
        if self._file is None:
            return self._known
        try:
            status = self._file.stat()
            if (status.st_mtime_ns, status.st_ino) != self._stamp:
                self._known = typed.read_json(self._file.read_bytes(), type=Known)
                self._stamp = (status.st_mtime_ns, status.st_ino)
        except (OSError, *NOT_READABLE):
            pass  # keep the state in memory
        return self._known


def _since(run: Run) -> int:
    return run.since
