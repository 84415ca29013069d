"""The `:CodeCompanion trust` page, and the decisions that the user makes there.

A decision applies to the content shown: the page sends back the folder with its identity, and each file with its hash.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.formats import text_files
from codecompanion.formats.plural import counted
from codecompanion.formats.short_path import short_path
from codecompanion.session.actions.follow_trust import apply_trust, show_waiting_files
from codecompanion.session.chat.chat import Chat
from codecompanion.session.services import Services
from codecompanion.session.state import State
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.folders import folder_of, identity_of
from codecompanion.session.trust.trust import sha256_of
from codecompanion.session.untrusted.waiting_files import (
    ProvidedFile,
    digest_of,
    note_first_sight,
    provided_files,
    untrusted_files,
)
from codecompanion.wire.events import Severity
from codecompanion.wire.requests import ChangeTrust, ShowTrust, Snapshot

SHOWN_CHARS = 200_000
"""Maximum number of characters shown of one file; the user can open the file to see the rest."""
SHOWN_TOGETHER = 2_000_000
"""Maximum number of characters shown of all files together, because a folder may contain hundreds of large files."""
_MAX_BYTES = 1_000_000
_NAMED = 3
ALWAYS_ON = "Approvals offer “always” now."


async def decide_trust(
    services: Services, request: ShowTrust | ChangeTrust, chats: Mapping[str, Chat]
) -> dict[str, Any] | str:
    """Return the content of the page, or a confirmation of the decision; raises `InputError`."""
    chat = chats.get(request.chat)
    root = chat.root() if chat is not None else services.root(Snapshot(cwd=request.cwd))
    await note_first_sight(services, root)
    found = await asyncio.to_thread(provided_files, services, root, request.folders, request.own_folder)
    if isinstance(request, ShowTrust):
        return await asyncio.to_thread(_shown, services, root, found)
    narrows = chat.narrowing.because if chat is not None else str
    was_narrowed = bool(narrows())
    sentence = await _decide(services, root, request, found)
    if request.what == "folder" and not found and was_narrowed and not narrows():
        sentence = f"{sentence} {ALWAYS_ON}"
    await follow_in(services, chats)
    return sentence


async def follow_in(services: Services, chats: Mapping[str, Chat]) -> None:
    """Apply the decision to the open chats.

    Open questions, the line about waiting files, and idle chats follow at once, running turns at their next request.
    """
    for chat in tuple(chats.values()):
        if chat.desk.questions:
            chat.desk.narrow(chat.narrowing.because())
        if chat.control.purpose:
            continue
        if chat.state is State.IDLE and chat.task is None:
            for sentence in await chat.context.drop_distrusted(chat.root()):
                chat.notice(Severity.WARN, sentence)
            await apply_trust(chat)
            chat.show_meter()
        else:
            await show_waiting_files(chat)
        if services.mcp is not None:
            await services.mcp.look(chat)


def _shown(services: Services, root: Path, found: list[ProvidedFile]) -> dict[str, Any]:
    trust, folder = services.trust, folder_of(root)
    decisions = trust.decisions()
    known = decisions.folder(folder)
    waiting = untrusted_files(found)
    others = [
        {"path": one.path, "kind": "folder", "since": one.since, "here": one.path == str(folder)}
        for one in decisions.folders
        if one.by == "user"
    ]
    others += [
        {"path": one.path, "kind": "file", "since": one.since, "here": one.folder == str(folder)}
        for one in decisions.files
    ]
    return {
        "folder": str(folder),
        "why": trust.why(folder),
        "since": known.since if known is not None and known.by == "user" else "",
        "identity": identity_of(folder),
        "files": _rows(found),
        "others": others,
        "waiting": len(waiting),
        "silenced": trust.decisions().is_silenced(folder, digest_of(waiting)),
        "problem": trust.problem,
    }


def _rows(found: list[ProvidedFile]) -> list[dict[str, Any]]:
    rows, left = list[dict[str, Any]](), SHOWN_TOGETHER
    for one in found:
        text = one.text[: min(SHOWN_CHARS, left)]
        left -= len(text)
        rows.append({**msgspec.to_builtins(one), "text": text, "cut": len(one.text) - len(text)})
    return rows


async def _decide(services: Services, root: Path, request: ChangeTrust, found: list[ProvidedFile]) -> str:
    trust = services.trust
    folder = Path(request.folder) if request.folder else folder_of(root)
    shown = [FileHash(one.path, one.sha256) for one in request.files]
    match request.what:
        case "folder":
            # Files that start programs are trusted with the content shown. The command shows none, so it trusts the
            # current content.
            now = [one for one in found if one.runs and not one.leads_out]
            paths = {one.path for one in now}
            programs = [one for one in shown if one.path in paths] if request.folder else [one.hash for one in now]
            if request.folder:
                _require_seen(services, found, shown)
            await trust.trust_folder(folder, programs, identity=request.identity)
            return f"Trusted: {short_path(folder)}.{_describe_effect(found)}"
        case "files":
            files = shown or [await asyncio.to_thread(_current_hash, root, request.path, found)]
            await trust.trust_files(folder, files)
            names = ", ".join(Path(one.path).name for one in files[:_NAMED])
            more = f" and {counted(len(files) - _NAMED, 'other')}" if len(files) > _NAMED else ""
            return f"Trusted until it changes: {names}{more}."
        case "revoke":
            path = await asyncio.to_thread(_real, root, request.path) if request.path else folder
            if await trust.revoke(path):
                return f"Trust revoked: {short_path(path)}." + _still(trust.why(path))
            raise InputError(f"No decision to revoke: {short_path(path)}." + _still(trust.why(path)))
        case "silence":
            await trust.silence(folder, digest_of(untrusted_files(found)))
            return "Nothing was loaded. The reminder returns when the files change."


def _require_seen(services: Services, found: list[ProvidedFile], shown: list[FileHash]) -> None:
    """Raise `InputError` when a command has written instructions since the page was shown."""
    inside = [one for one in found if not one.leads_out and one.hash not in shown]
    fresh = [one for one in inside if services.trust.is_by_command(Path(one.path), one.sha256)]
    if fresh:
        raise InputError(f"A command has changed {fresh[0].label} since the page was shown; review it again.")


def _real(root: Path, name: str) -> Path:
    return Path(os.path.realpath(root / Path(name).expanduser()))


def _current_hash(root: Path, name: str, found: list[ProvidedFile]) -> FileHash:
    path = _real(root, name)
    if known := next((one for one in found if one.path == str(path)), None):
        return known.hash
    try:
        content = text_files.read_bytes(path, _MAX_BYTES)
    except (CodeCompanionError, OSError) as error:
        why = str(error) if isinstance(error, CodeCompanionError) else text_files.reason(error)
        raise InputError(f"{name[:200]} cannot be trusted: {why}") from error
    return FileHash(str(path), sha256_of(content))


def _describe_effect(found: list[ProvidedFile]) -> str:
    inside = [one for one in found if not one.leads_out]
    outside = len(untrusted_files(found)) - len(untrusted_files(inside))
    follows = f" {counted(len(inside), 'file')} in it may be used." if inside else ""
    if not outside:
        return follows
    return f"{follows} {counted(outside, 'file')} outside it still {'wait' if outside > 1 else 'waits'}."


def _still(why: str) -> str:
    """Return a sentence about a setting that still trusts a folder, or "" if there is none."""
    reasons = {"setup": " `trust.folders` in setup() still trusts it.", "off": " `trust.enabled` is false."}
    return reasons.get(why, "")
