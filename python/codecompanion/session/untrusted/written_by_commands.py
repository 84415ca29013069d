"""Makes instruction files that a command writes wait for the user's trust, even in a trusted folder.

A trusted folder's rules, prompts and memories may change when the user edits them or approves a tool's diff. A command
shows no diff, and in YOLO mode it runs without approval.
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
from codecompanion.session.untrusted.waiting_files import instructions_of

_log = logging.getLogger(__name__)


@asynccontextmanager
async def instructions_watched(services: Services, root: Path) -> AsyncIterator[None]:
    """Record instruction files of a trusted folder that change inside this `with` block as written by a command."""
    trust, token = services.trust, services.new_token()
    if not trust.enabled:
        yield
        return
    is_trusted = await asyncio.to_thread(trust.is_trusted, root)
    before = await asyncio.to_thread(_contents, services, root) if is_trusted else {}
    await trust.note_command_start(root, token, (file for file, trusted in before.items() if trusted))
    try:
        yield
    finally:
        await trust.note_command_end(root, token)
        after = await asyncio.to_thread(_contents, services, root) if is_trusted else {}
        fresh = [file for file in after if file not in before]
        if fresh:
            try:
                await trust.note_commands(fresh)
            except InputError as error:
                _log.warning("%s", error)


def _contents(services: Services, root: Path) -> dict[FileHash, bool]:
    """Return {instruction file: whether it is trusted} for a folder."""
    return {one.hash: one.is_trusted for one in instructions_of(services, root)}
