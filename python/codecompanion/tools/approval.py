"""Decides whether the user must approve a call, from the grants of the chat so far. Pure.

- A tool with `require_approval_before = false` runs at once. Without a setting, tools that write or execute ask; tools
  that read do not.
- `always` covers the question's `key` in this chat only: all edits by one tool. For the shell it covers only the exact
  command, and for deletions only the same path. It covers nothing else that a tool may do later.
- For the shell it can also cover the families of commands that `grant_offer` finds. Commands that run the
  project's code, including exact commands, are covered until a file that defines them changes.
- Commands that begin with a prefix allowed in the configuration run immediately (`command_prefix`).
- YOLO covers every tool except those with `allowed_in_yolo_mode = false`; these ask unless `always` covers them.
- A change to a file that a program runs (`code_files`) always asks, even with YOLO or `require_approval_before =
  false`; only the `guarded_files` option excludes a file.
- A call for which the tool itself requires a question always asks (`Tool.why_asked`: `read_file` of a key file).
- No `always`, not even one from an earlier version, covers a command that destroys work (`destructive_commands`) or
  changes what later commands run (`lasting_changes`).
- While the context contains text from unknown authors, grants cover less and nothing new is granted (`narrowing`).
- A command that runs outside the sandbox always asks and grants nothing. A command that needs the network asks until
  "always" is answered for its hosts; then every command of this chat may reach them. If there is no sandbox although
  the user did not disable it, YOLO does not apply to commands.
- A rejection or a cancellation changes no grants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.tool import ANY_HOST, ApprovalQuestion, Tool
from codecompanion.wire.events import GrantScope

if TYPE_CHECKING:
    from codecompanion.tools.commands.offer import Family

Decision = Literal["once", "always", "reject", "cancel"]
NETWORK_GRANT = "network:"
"""Prefix of the id of a host grant."""


ANY_FILE = GrantScope("any file", "guarded files (Makefile, .git, CI …) still ask")
"""The scope of a grant for a tool that changes files."""
HIDDEN = "\x1f"
"""In a question's key, separates the end of the grant ("until …") from a part that only distinguishes it."""


class Grant(msgspec.Struct, frozen=True):
    """A grant: calls of `tool` in `scope` run without asking. `id` is used to revoke it."""

    id: str
    tool: str
    scope: GrantScope
    configured: bool = False


class Approvals(msgspec.Struct, frozen=True):
    """The grants of one chat. `always`: question keys; `settings`: the user's configuration per tool.

    `families`: granted families of commands; `files`: names of the files that define granted commands, by digest
    (none: granted by an earlier version); `guarded_files`: the user's patterns; `hosts`: the hosts that sandboxed
    commands may reach (`ANY_HOST` in it means all).
    """

    settings: Mapping[str, ToolSettings] = {}
    always: frozenset[str] = frozenset()
    yolo: bool = False
    families: frozenset[Family] = frozenset()
    files: Mapping[str, tuple[str, ...]] = {}
    guarded_files: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()

    def asks_before(self, tool: Tool) -> bool:
        """Return whether the tool's calls need approval by default."""
        setting = self.settings.get(tool.spec.name)
        return setting.require_approval_before if setting else tool.effect != "read"

    def may_ask(self, tool: Tool) -> bool:
        """Return whether a call of the tool must be checked, even if only for guarded files."""
        return self.asks_before(tool) or tool.effect == "write"

    def with_reason(self, question: ApprovalQuestion, given_path: str, root: str) -> ApprovalQuestion:
        """Return the question with `why` set if no `always` can cover it, and `again` if a grant no longer covers it.

        `given_path` is the path as the model wrote it, which may be a symlink into a guarded place.
        """
        if question.command:
            from codecompanion.tools.commands.destructive_commands import destroys_work  # not needed at startup

            why = "cannot be undone" if destroys_work(question.command) else ""
            from codecompanion.tools.commands.lasting_changes import why_no_always  # not needed at startup

            why = why or why_no_always(question.command, question.folder, root)
            why = "; ".join(filter(None, (why, question.why)))
            return msgspec.structs.replace(question, why=why, again="" if why else self._why_again(question))
        if not question.path:
            return question
        from codecompanion.tools.files.code_files import why_it_runs_code  # not needed at startup

        why = why_it_runs_code((question.path, given_path or question.path), root, self.guarded_files, question.becomes)
        return msgspec.structs.replace(question, why=why)

    def needs_question(self, tool: Tool, question: ApprovalQuestion | None) -> bool:
        """Return whether the user must answer `question` before the call may run.

        A tool without a question (`None`) asks only when the settings require approval for it by name.
        """
        setting = self.settings.get(tool.spec.name)
        if question is not None and question.why and not question.command:
            return True
        if question is not None and question.place == "outside":
            return True
        if question is not None and question.place == "network" and not self.reaches(question.hosts):
            return True
        if not self.asks_before(tool) or (question is None and setting is None):
            return False
        if self.covers(tool, question):
            return False
        covers = setting is None or setting.allowed_in_yolo_mode
        return not (self.yolo and covers and (question is None or question.place != "none"))

    def reaches(self, hosts: tuple[str, ...]) -> bool:
        """Return whether commands may reach these hosts; () means any host."""
        return ANY_HOST in self.hosts or (bool(hosts) and self.hosts.issuperset(hosts))

    def covers(self, tool: Tool, question: ApprovalQuestion | None) -> bool:
        """Return whether the user has granted this exact call, by "always" or by a command prefix."""
        if question is None or not question.why:
            if (question.key if question else tool.spec.name) in self.always:
                return True
            if question is not None and question.offer.families and self.families.issuperset(question.offer.families):
                return True
        setting = self.settings.get(tool.spec.name)
        return question is not None and bool(question.command) and self._is_configured(question, setting)

    def granted_by(self, tool: Tool, question: ApprovalQuestion | None) -> str:
        """Describe in a few words, for the audit log, why a call runs without a question."""
        setting = self.settings.get(tool.spec.name)
        if not self.asks_before(tool):
            return "never asks" if setting and tool.effect != "read" else "reads only"
        if question is None and setting is None:
            return "never asks"
        if (question.key if question else tool.spec.name) in self.always:
            return "always"
        if question is not None and self.covers(tool, question):
            return "configured prefix" if self._is_configured(question, setting) else "always, by prefix"
        return "YOLO" if self.yolo else "never asks"

    def _why_again(self, question: ApprovalQuestion) -> str:
        """Return why an earlier grant no longer covers the command; "" if there was none or it still does."""
        bound = {family for family in question.offer.families if family.digest} - self.families
        given = {(family.name, family.folder) for family in self.families}
        exact = f"run_command:{question.folder}\0{question.command}\0"
        was_exact = question.key not in self.always and any(key.startswith(exact) for key in self.always)
        if not was_exact and not any((family.name, family.folder) in given for family in bound):
            return ""
        return f"{' or '.join(question.offer.files[:4])} changed since you allowed it"

    def _is_configured(self, question: ApprovalQuestion, setting: ToolSettings | None) -> bool:
        """Return whether a configured prefix covers the command.

        `./run.sh` is a different program in another folder, so a prefix whose program is a path applies only in the
        root of the workspace.
        """
        from codecompanion.tools.commands.command_line import words  # not needed at startup
        from codecompanion.tools.commands.command_prefix import covers  # not needed at startup

        for prefix in setting.allowed_prefixes if setting else ():
            found = words(prefix)
            if found and (not question.folder or "/" not in found[0]) and covers(prefix, question.command):
                return True
        return False

    def after(self, question: ApprovalQuestion, decision: Decision, *, family: bool = False) -> Approvals:
        """Return the grants after the user's answer.

        `family`: `always` covers the family of commands that the question offers.
        """
        if decision != "always" or question.why or question.narrowed:
            return self
        hosts = self.hosts
        if question.place == "network":
            hosts |= frozenset(question.hosts or (ANY_HOST,))
        if family and question.offer.families:
            offered = question.offer.families
            changed = {(one.name, one.folder) for one in offered}
            kept = frozenset(one for one in self.families if (one.name, one.folder) not in changed)
            bound = {one.digest: question.offer.files for one in offered if one.digest}
            files = {**self.files, **bound}
            return msgspec.structs.replace(self, families=kept | frozenset(offered), files=files, hosts=hosts)
        bound = {question.offer.digest: question.offer.files} if question.offer.digest else {}
        files = {**self.files, **bound}
        return msgspec.structs.replace(self, always=self.always | {question.key}, files=files, hosts=hosts)

    def grants(self) -> tuple[Grant, ...]:
        """Return the grants from "always" answers and configured prefixes."""
        found = [self._grant_of(key) for key in sorted(self.always)]
        found += [Grant(_family_id(family), "run_command", self._of_family(family)) for family in sorted(self.families)]
        for tool, setting in sorted(self.settings.items()):
            found += [
                Grant(f"configured:{one}", tool, GrantScope(f"{one} …"), True) for one in setting.allowed_prefixes
            ]
        for host in sorted(self.hosts):
            what = "any host" if host == ANY_HOST else host
            found.append(Grant(f"{NETWORK_GRANT}{host}", "run_command", GrantScope(f"network: {what}")))
        return tuple(found)

    def _of_family(self, family: Family) -> GrantScope:
        from codecompanion.tools.commands.offer import covered  # not needed at startup

        files = self.files.get(family.digest, ())
        return covered([family], files)

    def _grant_of(self, key: str) -> Grant:
        """Return the grant for the key of a question (`ApprovalQuestion.key`)."""
        tool, _, rest = key.partition(":")
        folder, between, command = rest.partition("\0")
        if key in ("insert_edit", "create_file"):
            scope = ANY_FILE
        elif between:
            from codecompanion.tools.commands.offer import exactly  # not needed at startup

            command, _, digest = command.partition("\0")
            scope = exactly(command, folder, digest, self.files.get(digest, ()))
        else:
            text, is_until, _ = rest.partition(HIDDEN)
            scope = GrantScope(until=text) if is_until else GrantScope(text)
        return Grant(f"always:{key}", tool, scope)

    def narrowest(self, question: ApprovalQuestion) -> GrantScope:
        """Return the scope of `always` without a family."""
        known = {question.offer.digest: question.offer.files}
        return msgspec.structs.replace(self, files=known)._grant_of(question.key).scope

    def without(self, grant_id: str) -> Approvals:
        """Return the approvals with one grant revoked."""
        return msgspec.structs.replace(
            self,
            always=frozenset(key for key in self.always if f"always:{key}" != grant_id),
            families=frozenset(family for family in self.families if _family_id(family) != grant_id),
            hosts=frozenset(host for host in self.hosts if f"{NETWORK_GRANT}{host}" != grant_id),
        )

    def with_yolo(self, on: bool) -> Approvals:
        """Return the approvals with YOLO on or off; turning it off keeps every `always`."""
        return msgspec.structs.replace(self, yolo=on)


def _family_id(family: Family) -> str:
    return f"family:{family.folder}\0{family.name}"
