"""Reads the prompts of the user's folders and of the project, and keeps which of a project's the user has allowed.

A project's prompt is data from a repository: its text is not given to the editor before the user has allowed the file
with this content. Answers are kept for the repository by path and hash, like those about rule files; once the file
says something else it is asked again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut_line
from codecompanion.prompt_library.discovery import PromptText, Refused, find_prompts, project_of
from codecompanion.prompt_library.prompt_file import Prompt, read_prompt
from codecompanion.session.permits import Permits, read_permits
from codecompanion.session.services import Services
from codecompanion.store.store import durable
from codecompanion.wire.requests import ListPrompts, PermitPrompts
from codecompanion.workspace.secret_files import is_secret

BEGINNING_CHARS = 200


async def list_prompts(services: Services, request: ListPrompts) -> dict[str, Any]:
    """Return the answer of `requests.ListPrompts`."""
    root = _root(services, request.cwd)
    permits = await asyncio.to_thread(_permits, services, root)
    return await asyncio.to_thread(_read, request, root, permits)


async def permit_prompts(services: Services, request: PermitPrompts) -> str:
    """Keep the user's answer about files of a project; return one sentence."""
    root = _root(services, request.cwd)
    permits = await asyncio.to_thread(_permits, services, root)
    kept = permits.with_answer(((file.path, file.sha256) for file in request.files), allowed=request.allowed)
    await durable(services.store.save_permits(_key(root), kept.as_text()))
    names = ", ".join(Path(file.path).name for file in request.files)
    return f"Allowed: {names}." if request.allowed else f"Not used: {names}. It is asked again when the file changes."


def _read(request: ListPrompts, root: Path, permits: Permits) -> dict[str, Any]:
    prompts, problems = list[dict[str, Any]](), list[str]()
    for found in find_prompts(request.folders, request.own_folder, root):
        if isinstance(found, Refused):
            problems.append(found.text)
            continue
        try:
            prompt = read_prompt(found.text, found.label, found.stem, found.origin)
        except InputError as error:
            problems.append(str(error))
            continue
        if prompt is not None:
            prompts.append(_row(found, prompt, root, permits))
    return {"prompts": prompts, "problems": problems}


def _row(found: PromptText, prompt: Prompt, root: Path, permits: Permits) -> dict[str, Any]:
    is_project = found.origin == "project"
    state = permits.state_of(found.real, found.sha256) if is_project else "allowed"
    row: dict[str, Any] = msgspec.to_builtins(prompt)
    row |= {
        "origin": found.origin,
        "label": found.label,
        "path": found.real,
        "sha256": found.sha256,
        "state": state,
        "instructs": any(message.role == "system" for message in prompt.messages),
        "beginning": cut_line(" ".join(m.text for m in prompt.messages)[: 4 * BEGINNING_CHARS], BEGINNING_CHARS),
    }
    if is_project:
        row["files"], notes = _inside(prompt.files, found.label, root)
        row["notes"] = [*prompt.notes, *notes]
    if state != "allowed":
        row["messages"] = []
    return row


def _inside(files: Sequence[str], label: str, root: Path) -> tuple[list[str], list[str]]:
    """Return which files a project's prompt may attach: its own, and no secret ones."""
    project, kept, notes = project_of(root), list[str](), list[str]()
    for name in files:
        real = Path(os.path.realpath(root / Path(name)))
        if project not in real.parents:
            notes.append(f"{label}: {name} is outside of the project, and not attached.")
        elif is_secret(str(real)):
            notes.append(f"{label}: {name} may hold secrets, and is not attached.")
        else:
            kept.append(str(real))  # wherever the editor's working folder is by then
    return kept, notes


def _root(services: Services, cwd: str) -> Path:
    return Path(services.settings.workspace.root or cwd or ".").expanduser()


def _key(root: Path) -> str:
    return f"prompts {project_of(root)}"


def _permits(services: Services, root: Path) -> Permits:
    return read_permits(services.store.load_permits(_key(root)))
