"""Lists and revokes the "always" grants of a chat, and stores them for the next time the chat is opened.

Stored grants apply only in the workspace in which they were given. Command prefixes stored by earlier versions need
approval again. Grants are not part of the history, so a copy of the chat does not have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.session.services import Services
from codecompanion.session.tool_calls.approval_desk import ApprovalDesk
from codecompanion.tools.approval import Approvals, Grant
from codecompanion.tools.builtin.wording import one_line
from codecompanion.tools.commands.offer import Family
from codecompanion.tools.tool import ANY_HOST
from codecompanion.wire.events import Notice, Severity
from codecompanion.wire.requests import ListGrants, RevokeGrant
from codecompanion.workspace.paths import Workspace

_NAMED = 3
"""Maximum number of grants named when a chat is opened again."""
_MAX_BRIEF = 50
"""Maximum number of characters of each."""
_VERBS = {"insert_edit": "Edit", "create_file": "Create", "delete_file": "Delete"}
"""The names of tools that change files, as approvals show them."""


class _Kept(msgspec.Struct, frozen=True):
    root: str
    always: tuple[str, ...] = ()
    families: tuple[Family, ...] = ()
    hosts: tuple[str, ...] = ()
    files: dict[str, tuple[str, ...]] = {}


class Grants:
    """The grants of one chat; the approval desk applies them."""

    def __init__(self, services: Services, chat_id: str, desk: ApprovalDesk, root: Callable[[], Path]) -> None:
        self._services, self._chat_id, self._desk, self._workspace = services, chat_id, desk, root

    def carry_out(self, request: ListGrants | RevokeGrant) -> Any:
        """Carry out the user's request; return the answer defined in `requests`.

        Raises:
            InputError: the grant no longer exists, or it comes from the configuration.
        """
        match request:
            case ListGrants():
                return [_row(grant) for grant in self._desk.approvals.grants()]
            case RevokeGrant(grant=wanted):
                return self._revoke(wanted)

    def _revoke(self, wanted: str) -> str:
        desk = self._desk
        grant = next((one for one in desk.approvals.grants() if one.id == wanted), None)
        if grant is None:
            raise InputError("This was already revoked.")
        if grant.configured:
            raise InputError("This comes from allowed_prefixes in your configuration; remove it there.")
        desk.approvals = desk.approvals.without(wanted)
        self.keep(desk.approvals)
        what = grant.scope.what
        return f"{grant.tool} asks again: {what}" if what else f"{grant.tool} asks again."

    def keep(self, approvals: Approvals) -> None:
        """Store the grants so that they survive the host."""
        configured = frozenset((ANY_HOST,)) if self._services.settings.sandbox.network else frozenset[str]()
        hosts = tuple(sorted(approvals.hosts - configured))
        bound = " ".join([*approvals.always, *(family.digest for family in approvals.families)])
        files = {digest: names for digest, names in approvals.files.items() if digest in bound}
        kept = _Kept(self._root(), tuple(sorted(approvals.always)), tuple(sorted(approvals.families)), hosts, files)
        text = msgspec.json.encode(kept).decode() if kept.always or kept.families or kept.hosts else ""
        self._services.store.save_grants(self._chat_id, text)

    async def restore(self) -> None:
        """Restore the grants that the chat had before it was closed, and tell the user."""
        text = await asyncio.to_thread(self._services.store.load_grants, self._chat_id)
        if not text:
            return
        try:
            kept = typed.read_json(text, type=_Kept)
        except NOT_READABLE:
            return  # without the grants the user is asked again, which is safe
        if kept.root != self._root():
            return
        approvals = self._desk.approvals
        self._desk.approvals = msgspec.structs.replace(
            approvals,
            always=frozenset(kept.always),
            families=frozenset(kept.families),
            files=kept.files,
            hosts=approvals.hosts | frozenset(kept.hosts),
        )
        given = [_brief(grant) for grant in self._desk.approvals.grants() if not grant.configured]
        more = [f"{len(given) - _NAMED} more"] if len(given) > _NAMED else []
        # The command comes first: 'linebreak' would break the line after its slash.
        said = f"/approvals from earlier still apply: {'; '.join([*given[:_NAMED], *more])}."
        self._services.emit(Notice(chat=self._chat_id, level=Severity.INFO, text=said))

    def _root(self) -> str:
        return str(Workspace(self._workspace()).root)


def _brief(grant: Grant) -> str:
    """Return the grant without its conditions."""
    what, verb = grant.scope.what, _VERBS.get(grant.tool, grant.tool)
    return one_line(what if grant.tool == "run_command" else f"{verb} {what}".rstrip(), _MAX_BRIEF)


def _row(grant: Grant) -> dict[str, Any]:
    return {
        "grant": grant.id,
        "tool": grant.tool,
        "scope": msgspec.structs.asdict(grant.scope),
        "configured": grant.configured,
    }
