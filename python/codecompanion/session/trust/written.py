"""Make instructions that a command writes wait for the user's trust, even in a trusted folder (issue 20, section 2).

A trusted folder's rules, prompts and memories may change when the user edits them or approves a tool's diff. A command
shows no diff, and in YOLO mode it runs without a question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from codecompanion.errors import InputError
from codecompanion.session.services import Services
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.waiting import instructions_of

_log = logging.getLogger(__name__)


@asynccontextmanager
async def instructions_watched(services: Services, root: Path) -> AsyncIterator[None]:
    """Record the instructions of a trusted folder that change in this context as written by a command."""
    trust = services.trust
    if not trust.enabled or not await asyncio.to_thread(trust.is_trusted, root):
        yield
        return
    before = await asyncio.to_thread(_contents, services, root)
    try:
        yield
    finally:
        fresh = [one for one in await asyncio.to_thread(_contents, services, root) if one not in before]
        if fresh:
            try:
                await trust.note_commands(fresh)
            except InputError as error:
                _log.warning("%s", error)


def _contents(services: Services, root: Path) -> frozenset[FileHash]:
    return frozenset(one.hash for one in instructions_of(services, root) if one.is_trusted)
