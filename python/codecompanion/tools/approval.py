"""Whether a call must be approved by the user: a pure decision over what the chat has granted so far.

- A tool with `require_approval_before = false` runs at once. Without a setting, tools that write or execute ask, tools
  that read do not.
- `always` covers the question's `key` in this chat only: all edits by one tool, but of a shell only the very same
  command, and of deletions only the same path. Nothing else that a tool may do later is covered by it.
- Of a shell it can also cover the families of commands that `grant_offer` finds (issue 20). What runs the project's
  code is covered as long as the files that define it stay as they are, the very same command too.
- Commands that begin with an allowed prefix of the configuration run at once (`command_prefix`).
- YOLO covers every tool but those with `allowed_in_yolo_mode = false`; these keep asking unless `always` covers them.
- A change of a file that something runs (`code_files`) is asked about whatever was granted, also by YOLO and by
  `require_approval_before = false`; only the option `guarded_files` takes a file out.
- A call that a tool itself wants to be asked about (`Tool.why_asked`: `read_file` of a file of keys) is, likewise.
- A command that destroys work (`destroyers`) or changes what later commands run (`lasting_changes`) is covered by no
  `always`, those of earlier versions too.
- While text that nobody chose is in the context, less is covered and nothing is granted (`narrowing`).
- A command that is to run outside of the sandbox is asked about whatever was granted, and grants nothing. One that
  wants the network is asked about until "always" was answered for the hosts it needs: then these are allowed to every
  command of this chat. Where there is no sandbox although the user did not switch it off, YOLO covers no command.
- A rejection and a cancel grant nothing and take nothing away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.base import ANY_HOST, ApprovalQuestion, Tool
from codecompanion.tools.commands.command_line import words
from codecompanion.tools.commands.command_prefix import covers
from codecompanion.tools.commands.destroyers import destroys_work
from codecompanion.tools.commands.grant_offer import Family
from codecompanion.tools.commands.lasting_changes import why_no_always
from codecompanion.tools.files.code_files import why_it_runs_code

Decision = Literal["once", "always", "reject", "cancel"]
NETWORK_GRANT = "network:"
"""What the id of a grant of a host begins with."""


class Grant(msgspec.Struct, frozen=True):
    """Something that runs without asking: every call of `tool`, or only `what` it says. `id` takes it back."""

    id: str
    tool: str
    what: str = ""
    configured: bool = False


class Approvals(msgspec.Struct, frozen=True):
    """What one chat has granted. `always` holds question keys; `settings` what the user configured per tool.

    `families` are families of commands; `guarded_files` the user's patterns; `hosts` those that commands in the sandbox
    may reach, `ANY_HOST` among them = all.
    """

    settings: Mapping[str, ToolSettings] = {}
    always: frozenset[str] = frozenset()
    yolo: bool = False
    families: frozenset[Family] = frozenset()
    guarded_files: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()

    def asks_before(self, tool: Tool) -> bool:
        """Return whether the tool's calls are to be approved at all."""
        setting = self.settings.get(tool.spec.name)
        return setting.require_approval_before if setting else tool.effect != "read"

    def may_ask(self, tool: Tool) -> bool:
        """Return whether a call of the tool has to be looked at: also one that only asks about guarded files."""
        return self.asks_before(tool) or tool.effect == "write"

    def with_reason(self, question: ApprovalQuestion, given_path: str, root: str) -> ApprovalQuestion:
        """Return the question with `why` set when no `always` covers it, `again` when one does no longer.

        `given_path` is what the model wrote, which may be a link into a guarded place.
        """
        if question.command:
            why = "this can destroy work and cannot be undone" if destroys_work(question.command) else ""
            why = why or why_no_always(question.command, question.folder, root)
            why = "; ".join(filter(None, (why, question.why)))
            return msgspec.structs.replace(question, why=why, again="" if why else self._why_again(question))
        if not question.path:
            return question
        why = why_it_runs_code((question.path, given_path or question.path), root, self.guarded_files, question.becomes)
        return msgspec.structs.replace(question, why=why)

    def needs_question(self, tool: Tool, question: ApprovalQuestion | None) -> bool:
        """Return whether the user must answer `question` before the call may run.

        A tool that has no question of its own (`None`) is asked about only when the settings demand it by name.
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
        """Return whether commands may reach these hosts; () = any."""
        return ANY_HOST in self.hosts or (bool(hosts) and self.hosts.issuperset(hosts))

    def covers(self, tool: Tool, question: ApprovalQuestion | None) -> bool:
        """Return whether the user has granted the very call: by "always", or by a prefix of commands."""
        if question is None or not question.why:
            if (question.key if question else tool.spec.name) in self.always:
                return True
            if question is not None and question.offer.families and self.families.issuperset(question.offer.families):
                return True
        setting = self.settings.get(tool.spec.name)
        return question is not None and bool(question.command) and self._is_configured(question, setting)

    def granted_by(self, tool: Tool, question: ApprovalQuestion | None) -> str:
        """Return what lets a call run of which nobody is asked, in a few words for the audit log."""
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
        """Return why a grant that was given covers the command no more, "" when none was or it still does."""
        bound = {family for family in question.offer.families if family.digest} - self.families
        given = {(family.name, family.folder) for family in self.families}
        exact = f"run_command:{question.folder}\0{question.command}\0"
        was_exact = question.key not in self.always and any(key.startswith(exact) for key in self.always)
        if not was_exact and not any((family.name, family.folder) in given for family in bound):
            return ""
        return f"{' or '.join(question.offer.files[:4])} changed since you allowed it"

    def _is_configured(self, question: ApprovalQuestion, setting: ToolSettings | None) -> bool:
        """Return whether a prefix of the configuration covers the command.

        `./run.sh` is another program in another folder: a prefix whose program is a path counts only in the root of
        the workspace.
        """
        for prefix in setting.allowed_prefixes if setting else ():
            found = words(prefix)
            if found and (not question.folder or "/" not in found[0]) and covers(prefix, question.command):
                return True
        return False

    def after(self, question: ApprovalQuestion, decision: Decision, *, family: bool = False) -> Approvals:
        """Return what is granted once the user has answered; `family`: `always` covers what the question offers."""
        if decision != "always" or question.why or question.narrowed:
            return self
        hosts = self.hosts
        if question.place == "network":
            hosts |= frozenset(question.hosts or (ANY_HOST,))
        if family and question.offer.families:
            changed = {(one.name, one.folder) for one in question.offer.families}
            kept = frozenset(one for one in self.families if (one.name, one.folder) not in changed)
            return msgspec.structs.replace(self, families=kept | frozenset(question.offer.families), hosts=hosts)
        return msgspec.structs.replace(self, always=self.always | {question.key}, hosts=hosts)

    def grants(self) -> tuple[Grant, ...]:
        """Return what runs without asking because "always" was answered, or a prefix is configured."""
        found = [_grant_of(key) for key in sorted(self.always)]
        found += [Grant(_family_id(family), "run_command", _of_family(family)) for family in sorted(self.families)]
        for tool, setting in sorted(self.settings.items()):
            found += [Grant(f"configured:{one}", tool, f"{one} …", True) for one in setting.allowed_prefixes]
        for host in sorted(self.hosts):
            what = "any host" if host == ANY_HOST else host
            found.append(Grant(f"{NETWORK_GRANT}{host}", "run_command", f"network: {what}"))
        return tuple(found)

    def without(self, grant_id: str) -> Approvals:
        """Return the approvals with one grant taken back."""
        return msgspec.structs.replace(
            self,
            always=frozenset(key for key in self.always if f"always:{key}" != grant_id),
            families=frozenset(family for family in self.families if _family_id(family) != grant_id),
            hosts=frozenset(host for host in self.hosts if f"{NETWORK_GRANT}{host}" != grant_id),
        )

    def with_yolo(self, on: bool) -> Approvals:
        """Return the same grants with YOLO switched; switching it off forgets no `always`."""
        return msgspec.structs.replace(self, yolo=on)


def _family_id(family: Family) -> str:
    return f"family:{family.folder}\0{family.name}"


def _of_family(family: Family) -> str:
    where = f" (in {family.folder})" if family.folder else ""
    until = ", until the files that define it change" if family.digest else ", harmless options only"
    return f"{family.name}{where}{until}"


def _grant_of(key: str) -> Grant:
    """Return a grant from the key of its question (`ApprovalQuestion.key`)."""
    tool, _, rest = key.partition(":")
    folder, between, command = rest.partition("\0")
    command, _, digest = command.partition("\0")
    what = rest if not between else f"{command} (in {folder})" if folder else command
    what += ", until the files that define it change" if digest else ""
    return Grant(f"always:{key}", tool, what)
