"""Whether a call must be approved by the user: a pure decision over what the chat has granted so far.

- A tool with `require_approval_before = false` runs at once. Without a setting, tools that write or execute ask, tools
  that read do not.
- `always` covers the question's `key` in this chat only: all edits by one tool, but of a shell only the very same
  command, and of deletions only the same path. Nothing else that a tool may do later is covered by it.
- YOLO covers every tool but those with `allowed_in_yolo_mode = false`; these keep asking unless `always` covers them.
- A rejection and a cancel grant nothing and take nothing away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from codecompanion.settings import ToolSettings
from codecompanion.tools.base import ApprovalQuestion, Tool

Decision = Literal["once", "always", "reject", "cancel"]


class Approvals(msgspec.Struct, frozen=True):
    """What one chat has granted. `always` holds question keys; `settings` what the user configured per tool."""

    settings: Mapping[str, ToolSettings] = {}
    always: frozenset[str] = frozenset()
    yolo: bool = False

    def asks_before(self, tool: Tool) -> bool:
        """Return whether the tool's calls are to be approved at all."""
        setting = self.settings.get(tool.spec.name)
        return setting.require_approval_before if setting else tool.effect != "read"

    def needs_question(self, tool: Tool, question: ApprovalQuestion | None) -> bool:
        """Return whether the user must answer `question` before the call may run.

        A tool that has no question of its own (`None`) is asked about only when the settings demand it by name.
        """
        setting = self.settings.get(tool.spec.name)
        if not self.asks_before(tool) or (question is None and setting is None):
            return False
        if (question.key if question else tool.spec.name) in self.always:
            return False
        return not (self.yolo and (setting is None or setting.allowed_in_yolo_mode))

    def after(self, question: ApprovalQuestion, decision: Decision) -> Approvals:
        """Return what is granted once the user has answered."""
        if decision != "always":
            return self
        return msgspec.structs.replace(self, always=self.always | {question.key})

    def with_yolo(self, on: bool) -> Approvals:
        """Return the same grants with YOLO switched; switching it off forgets no `always`."""
        return msgspec.structs.replace(self, yolo=on)

    def without_grants(self) -> Approvals:
        """Return the approvals of a fresh chat with the same settings."""
        return Approvals(self.settings)
