"""Whether a call must be approved by the user: a pure decision over what the chat has granted so far.

- A tool with `require_approval_before = false` runs at once. Without a setting, tools that write or execute ask, tools
  that read do not.
- `always` covers the question's `key` in this chat only: all edits by one tool, but of a shell only the very same
  command, and of deletions only the same path. Nothing else that a tool may do later is covered by it.
- Commands that begin with an allowed prefix, from the configuration or from this chat, run at once; what counts as
  beginning with it is in `command_prefix`.
- YOLO covers every tool but those with `allowed_in_yolo_mode = false`; these keep asking unless `always` covers them.
- A change of a file that something runs (`code_files`) is asked about whatever was granted, also by YOLO and by
  `require_approval_before = false`; only the option `guarded_files` takes a file out.
- A call that a tool itself wants to be asked about (`Tool.why_asked`: `read_file` of a file of keys) is, likewise.
- A command that destroys work (`destroyers`) is covered by no `always` and no prefix, those of earlier versions too.
- A rejection and a cancel grant nothing and take nothing away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from codecompanion.errors import InputError
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.base import ApprovalQuestion, Tool
from codecompanion.tools.commands.command_prefix import covers, problem_with, words
from codecompanion.tools.commands.destroyers import destroys_work
from codecompanion.tools.files.code_files import why_it_runs_code

Decision = Literal["once", "always", "reject", "cancel"]


class Grant(msgspec.Struct, frozen=True):
    """Something that runs without asking: every call of `tool`, or only `what` it says. `id` takes it back."""

    id: str
    tool: str
    what: str = ""
    configured: bool = False


class Approvals(msgspec.Struct, frozen=True):
    """What one chat has granted. `always` holds question keys; `settings` what the user configured per tool.

    `prefixes` are beginnings of commands, each with the folder it was granted in; `guarded_files` the user's patterns.
    """

    settings: Mapping[str, ToolSettings] = {}
    always: frozenset[str] = frozenset()
    yolo: bool = False
    prefixes: frozenset[tuple[str, str]] = frozenset()
    guarded_files: tuple[str, ...] = ()

    def asks_before(self, tool: Tool) -> bool:
        """Return whether the tool's calls are to be approved at all."""
        setting = self.settings.get(tool.spec.name)
        return setting.require_approval_before if setting else tool.effect != "read"

    def may_ask(self, tool: Tool) -> bool:
        """Return whether a call of the tool has to be looked at: also one that only asks about guarded files."""
        return self.asks_before(tool) or tool.effect == "write"

    def with_reason(self, question: ApprovalQuestion, given_path: str, root: str) -> ApprovalQuestion:
        """Return the question with `why` set when no `always` covers it: it destroys work, or something runs the file.

        `given_path` is what the model wrote, which may be a link into a guarded place.
        """
        if question.command and destroys_work(question.command):
            return msgspec.structs.replace(question, why="this can destroy work for good")
        if not question.path:
            return question
        why = why_it_runs_code((question.path, given_path or question.path), root, self.guarded_files)
        return msgspec.structs.replace(question, why=why)

    def needs_question(self, tool: Tool, question: ApprovalQuestion | None) -> bool:
        """Return whether the user must answer `question` before the call may run.

        A tool that has no question of its own (`None`) is asked about only when the settings demand it by name.
        """
        setting = self.settings.get(tool.spec.name)
        if question is not None and question.why and not question.command:
            return True
        if not self.asks_before(tool) or (question is None and setting is None):
            return False
        if question is None or not question.why:
            if (question.key if question else tool.spec.name) in self.always:
                return False
            if question is not None and question.command and self._allows(question, setting):
                return False
        return not (self.yolo and (setting is None or setting.allowed_in_yolo_mode))

    def _allows(self, question: ApprovalQuestion, setting: ToolSettings | None) -> bool:
        """Return whether a prefix covers the command.

        `./run.sh` is another program in another folder: a prefix whose program is a path counts only where it was
        granted, one from the configuration only in the root of the workspace.
        """
        configured = frozenset(("", prefix) for prefix in (setting.allowed_prefixes if setting else ()))
        for folder, prefix in configured | self.prefixes:
            found = words(prefix)
            if found and (folder == question.folder or "/" not in found[0]) and covers(prefix, question.command):
                return True
        return False

    def after(self, question: ApprovalQuestion, decision: Decision, prefix: str = "") -> Approvals:
        """Return what is granted once the user has answered; `prefix` is what `always` is to cover of a command."""
        if decision != "always" or question.why:
            return self
        if prefix:
            return msgspec.structs.replace(self, prefixes=self.prefixes | {(question.folder, prefix)})
        return msgspec.structs.replace(self, always=self.always | {question.key})

    def grants(self) -> tuple[Grant, ...]:
        """Return what runs without asking because "always" was answered, or a prefix is configured."""
        found = [_grant_of(key) for key in sorted(self.always)]
        for folder, prefix in sorted(self.prefixes):
            found.append(Grant(_prefix_id(folder, prefix), "run_command", _of_prefix(prefix, folder)))
        for tool, setting in sorted(self.settings.items()):
            found += [Grant(f"configured:{one}", tool, _of_prefix(one, ""), True) for one in setting.allowed_prefixes]
        return tuple(found)

    def without(self, grant_id: str) -> Approvals:
        """Return the approvals with one grant taken back."""
        return msgspec.structs.replace(
            self,
            always=frozenset(key for key in self.always if f"always:{key}" != grant_id),
            prefixes=frozenset(pair for pair in self.prefixes if _prefix_id(*pair) != grant_id),
        )

    def with_yolo(self, on: bool) -> Approvals:
        """Return the same grants with YOLO switched; switching it off forgets no `always`."""
        return msgspec.structs.replace(self, yolo=on)


def _prefix_id(folder: str, prefix: str) -> str:
    return f"prefix:{folder}\0{prefix}"


def _of_prefix(prefix: str, folder: str) -> str:
    where = f" (in {folder})" if folder else ""
    return f"{prefix} …{where}"


def _grant_of(key: str) -> Grant:
    """Return a grant from the key of its question (`ApprovalQuestion.key`)."""
    tool, _, rest = key.partition(":")
    folder, between, command = rest.partition("\0")
    what = rest if not between else f"{command} (in {folder})" if folder else command
    return Grant(f"always:{key}", tool, what)


def check_prefix(prefix: str, question: ApprovalQuestion) -> None:
    """Check what the user made of the offered prefix.

    Raises:
        InputError: it is no plain beginning of a command, could run any program, or does not cover this command.
    """
    problem = problem_with(prefix)
    if not problem and not covers(prefix, question.command):
        problem = f"This command does not begin with “{prefix}”, or could run another program or write to any file"
    if problem:
        raise InputError(f"{problem}. The approval is still open.")
