"""The `:CodeCompanion memory` page: shows everything remembered about a project, and deletes parts of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codecompanion.errors import InputError
from codecompanion.memory.entries import Entry, first_line
from codecompanion.memory.search_entries import search
from codecompanion.model.messages import Source
from codecompanion.model.provenance import UNKNOWN
from codecompanion.session.chat.chat import Chat
from codecompanion.session.memory.project_memory import ProjectMemory
from codecompanion.session.provenance.memory_sources import MemorySources
from codecompanion.session.services import Services
from codecompanion.store.files.memory_files import MemoryFiles
from codecompanion.wire.requests import DeleteMemory, RestoreMemory, ShowMemory, Snapshot

MAX_SHOWN = 500
_NOTHING_KEPT = "Nothing is remembered: no files are kept."


async def carry_out_memory(
    services: Services, request: ShowMemory | DeleteMemory | RestoreMemory, chats: Mapping[str, Chat]
) -> dict[str, Any] | str:
    """Return the content of the page, or a confirmation that a memory was deleted or restored.

    Raises:
        InputError: this host keeps no memory.
        StoreError: a file cannot be read, deleted or restored.
    """
    if isinstance(request, DeleteMemory):
        return await asyncio.to_thread(_delete, services, Path(request.path))
    if isinstance(request, RestoreMemory):
        return await asyncio.to_thread(_restore, services)
    chat = chats.get(request.chat)
    root = chat.root() if chat is not None else services.root(Snapshot(cwd=request.cwd))
    memory = services.memory_of(root)
    if memory is None:
        raise InputError(_NOTHING_KEPT)
    return await asyncio.to_thread(_shown, memory, request)


def _shown(memory: ProjectMemory, request: ShowMemory) -> dict[str, Any]:
    found = memory.entries(whole=bool(request.query), everything=request.everything)
    found.sort(key=lambda one: one.time, reverse=True)
    shown = [hit.entry for hit in search(found, request.query, MAX_SHOWN)] if request.query else found
    user, project = memory.users_files()
    return {
        "folder": str(memory.folder),
        "user": str(user or ""),
        "project": str(project or ""),
        "unused": memory.unused_files(),
        "of": len(shown),
        "others": 0 if request.everything else memory.count_others(),
        "entries": [_row(one) for one in shown[:MAX_SHOWN]],
    }


def _row(one: Entry) -> dict[str, Any]:
    return {
        "path": one.path,
        "line": one.line,
        "origin": one.origin,
        "scope": one.scope,
        "is_private": one.is_private,
        "title": one.title,
        "first": first_line(one.text),
        "time": one.time,
        "can_delete": one.is_ours,
    }


def _memories(services: Services) -> MemoryFiles:
    if services.keeping is None:
        raise InputError(_NOTHING_KEPT)
    return services.keeping.memories


def _delete(services: Services, path: Path) -> str:
    memories = _memories(services)

    def forget() -> tuple[Source, ...]:
        try:
            return MemorySources(memories.places.memory_dir).forget(path)
        except OSError:
            return (UNKNOWN,)

    can_restore = memories.delete(path, forget)
    name = " ".join(path.name.split())  # a line break in a file name must not split the line
    return f"Deleted {name}; u restores it" if can_restore else f"Deleted {name}"


def _restore(services: Services) -> str:
    memories = _memories(services)
    sources = MemorySources(memories.places.memory_dir)
    one = memories.restore(lambda one: sources.before_file(one.path, one.sources))
    return f"Restored {' '.join(one.path.name.split())}"
