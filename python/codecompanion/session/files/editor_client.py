"""Sends the tools' requests to the editor as events; the editor answers with `answer` and is never blocked.

There is one instance per host, because there is one editor. If the editor does not answer in time (a prompt is open,
the terminal is stopped), the files on disk are used and the model is informed. A late answer is dropped, and the editor
does not start a request after its `until_ms`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import ToolError
from codecompanion.formats import typed
from codecompanion.formats.plural import counted
from codecompanion.tools.files.open_files import Changed, Opened, OpenFile, ToolAnswer
from codecompanion.wire.events import Ask, Event
from codecompanion.wire.requests import Answer, Diagnostic

LOOK_LIMIT_S = 5.0
"""Timeout of a `look` request: an idle editor answers in milliseconds; otherwise a prompt is open or the editor is
suspended.
"""
CHANGE_LIMIT_S = 30.0
"""Additional timeout of a `change` request: saving runs the user's autocommands, and formatters may take a few seconds.
"""


class _Found(msgspec.Struct):
    files: list[OpenFile] = []


class _Problems(msgspec.Struct):
    diagnostics: list[Diagnostic] = []


class EditorClient:
    """The editor of this host, as an interface for tools (`tools.files.open_files.Editor`)."""

    def __init__(
        self, emit: Callable[[Event], None], clock: Callable[[], float], look_limit_s: float = LOOK_LIMIT_S,
        change_limit_s: float = CHANGE_LIMIT_S,
    ) -> None:  # fmt: skip
        """Create the object. `clock` returns seconds since the epoch, like the editor's clock."""
        self._emit, self._clock = emit, clock
        self._look_limit_s, self._change_limit_s = look_limit_s, change_limit_s
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}

    def take(self, answer: Answer) -> None:
        """Pass an answer to the waiting request; drop it if it is late."""
        waiting = self._waiting.get(answer.ask_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def look(self, paths: Sequence[Path] | None) -> Opened:
        """Return the open files among the paths; None asks for all unsaved files."""
        wanted = None if paths is None else [str(path) for path in paths]
        answer = await self._ask("look", {"paths": wanted}, self._look_limit_s, self._look_limit_s)
        if answer is None or not answer.ok:
            return Opened(silent=True)
        found = typed.convert(answer.result, _Found)
        return Opened({file.path: file for file in found.files})

    async def diagnostics(self) -> Sequence[Diagnostic] | None:
        """Return the current diagnostics of open files, or None if the editor does not answer."""
        answer = await self._ask("diagnostics", {}, self._look_limit_s, self._look_limit_s)
        return None if answer is None or not answer.ok else typed.convert(answer.result, _Problems).diagnostics

    async def change(self, file: OpenFile, text: str, *, save: bool = True) -> Changed:
        """Set the content of an open file to `text`.

        Save the file if `save` is true and it had no unsaved changes before.
        """
        fields = {"path": file.path, "buffer": file.buffer, "tick": file.tick, "text": text, "save": save}
        answer = await self._ask("change", fields, self._look_limit_s, self._look_limit_s + self._change_limit_s)
        if answer is None:
            reason = (
                f"The editor did not answer in time, so {file.path} may or may not have been changed."
                " Read the file again before the next edit."
            )
            return Changed(state="unknown", reason=reason)
        if not answer.ok:
            return Changed(state="refused", reason=f"{file.path} was not changed: {answer.error}")
        return typed.convert(answer.result, Changed)

    async def reload(self, deleted: Path | None = None) -> None:
        """Ask the editor to reload open files that have no unsaved changes and have changed on disk."""
        fields: dict[str, object] = {} if deleted is None else {"deleted": str(deleted)}
        self._emit(Ask(ask_id=0, what="reload", until_ms=0, fields=fields))

    async def run_tool(self, name: str, fields: Mapping[str, Any], limit_s: float) -> ToolAnswer:
        """Run one of the user's own tools in the editor; the editor is notified if the result is no longer awaited.

        Raises:
            ToolError: the editor did not answer in time or cannot run the tool; the message gives the details.
        """
        number, answered = next(self._numbers), False
        try:
            start_s = min(self._look_limit_s, limit_s)
            answer = await self._ask("run_tool", {"name": name, **fields}, start_s, limit_s, number)
            answered = answer is not None
        finally:
            if not answered:
                self._emit(Ask(ask_id=0, what="stop_tool", until_ms=0, fields={"ask_id": number}))
        if answer is None:
            raise ToolError(f"{name} did not finish within {counted(limit_s, 'second')} and was stopped.")
        if not answer.ok:
            raise ToolError(f"{name} cannot be run: {answer.error}.")
        return typed.convert(answer.result, ToolAnswer)

    async def _ask(
        self, what: str, fields: dict[str, Any], start_s: float, limit_s: float, number: int = 0
    ) -> Answer | None:
        """Return the answer, or None if it does not arrive in time.

        The editor starts within `start_s` or not at all.
        """
        number = number or next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._emit(Ask(ask_id=number, what=what, until_ms=round((self._clock() + start_s) * 1000), fields=fields))
            async with asyncio.timeout(limit_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            del self._waiting[number]
