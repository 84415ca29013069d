"""Writes audit records of a chat's tool calls, with the executed arguments (`store.audit`)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from codecompanion.model.history import FileChangeEnded, FileChangeStarted
from codecompanion.session.services import Services
from codecompanion.tools.tool import Tool


class AuditedCall:
    """Records one tool call: before it runs, and afterwards with its outcome and the files it changed."""

    def __init__(self, services: Services, chat: str, turn: str, call_id: str) -> None:
        self._services = services
        self._same: dict[str, Any] = {"chat": chat, "turn": turn, "call": call_id, "run": services.new_token()}
        self._about: dict[str, Any] = {}
        self._files: list[dict[str, Any]] = []
        self._is_open = self._urgent = False

    def changed(self, began: FileChangeStarted, ended: FileChangeEnded) -> None:
        """Add a file change that the call made."""
        self._files.append(file_record(began, ended))

    def record_start(
        self, tool: Tool, arguments: Mapping[str, Any], *, grant: str, sandbox: str, narrowed: str
    ) -> None:
        """Record that the call starts."""
        about: dict[str, Any] = {"kind": _kind_of(tool), "tool": tool.spec.name, "arguments": dict(arguments)}
        about |= {"server": tool.server} if tool.server else {}
        about |= {"sandbox": sandbox} if sandbox else {}
        about |= {"narrowed": narrowed} if narrowed else {}
        self._is_open, self._about, self._urgent = True, about, tool.effect != "read"
        record(self._services, urgent=self._urgent, event="began", grant=grant, **self._same, **about)

    def record_rerun(self, summary: str, where: str, grant: str) -> None:
        """Record, as a separate run, that a failed command runs again in another sandbox or unsandboxed."""
        self.record_end("error", summary)
        self._same |= {"run": self._services.new_token()}
        self._files, self._is_open = [], True
        record(self._services, event="began", grant=grant, **self._same, **(self._about | {"sandbox": where}))

    def record_end(self, status: str, summary: str = "") -> None:
        """Record the outcome once; `summary` is stored for commands only."""
        if self._is_open:
            self._is_open = False
            result = {"result": summary} if summary and self._about["kind"] == "command" else {}
            ended = {"event": "ended", "status": status, **self._same, **result, "files": self._files}
            record(self._services, urgent=self._urgent, **ended)


def file_record(began: FileChangeStarted, ended: FileChangeEnded) -> dict[str, Any]:
    """Return the record of a file change: the SHA-256 of the file before and after, or "" if it does not exist."""
    is_made = ended.state in ("written", "unsaved")
    after = (ended.after or began.after) if is_made else began.before
    return {"path": began.path, "before": began.before, "after": after, "state": ended.state}


def record(services: Services, *, urgent: bool = True, **said: Any) -> None:
    """Add a record with the current time; `urgent`: the recorded action has effects."""
    now = datetime.datetime.fromtimestamp(services.clock(), datetime.UTC)
    services.audit.add({"time": now.isoformat(timespec="milliseconds"), **said}, urgent=urgent)


def _kind_of(tool: Tool) -> str:
    if tool.server:
        return "server"
    return "command" if tool.spec.name == "run_command" else "tool"
