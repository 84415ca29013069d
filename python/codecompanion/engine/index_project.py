"""Implements the verb `index_project`: reports or builds the code index of a folder (`:CodeCompanion index`)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import InputError
from codecompanion.session.code.left_out_files import left_out_sentence
from codecompanion.session.code.project_indexes import choice_of
from codecompanion.session.services import Services
from codecompanion.wire.requests import IndexProject


async def index_project(services: Services, request: IndexProject) -> dict[str, Any]:
    """Handle the request; return the result that its docstring describes.

    Raises:
        InputError: the folder does not exist, or there is no folder for indexes.
    """
    root = Path(request.cwd)
    if services.indexes is None:
        raise InputError("No folder for the index; set HOME or XDG_CACHE_HOME.")
    if not root.is_absolute() or not await asyncio.to_thread(root.is_dir):
        raise InputError(f"{request.cwd} is not a folder.")
    index = await services.indexes.of(root, choice_of(services.settings.context))
    if request.rebuild:
        await index.build(is_rebuild=True)
    elif request.start:
        await index.refresh()
    if services.vectors is not None and (request.rebuild or request.start):
        services.vectors.make_soon(index)
    is_told_only = not (request.rebuild or request.start)
    left_out = left_out_sentence(await index.left_out()) if is_told_only else ""
    counts = msgspec.to_builtins(await index.counts())
    counts["complete"] = counts.pop("is_complete")
    state = msgspec.to_builtins(index.state)
    problem = services.vectors.problem(index) if services.vectors is not None else ""
    return {"root": str(index.root), **state, **counts, "left_out": left_out, "no_vectors": problem}
