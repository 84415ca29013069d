"""Reads the prompts in the user's folders and in the project.

A project's prompt is data from a repository: the editor receives its text only after the user trusts the folder, or
the file with this content (`session.trust`).
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
from codecompanion.prompt_library.find_prompt_files import PromptText, Refused, find_prompts, project_of
from codecompanion.prompt_library.prompt_file import Prompt, read_prompt
from codecompanion.session.services import Services
from codecompanion.session.trust.trust import Trust
from codecompanion.wire.requests import ListPrompts
from codecompanion.workspace.secret_files import is_secret

BEGINNING_CHARS = 200


async def list_prompts(services: Services, request: ListPrompts) -> dict[str, Any]:
    """Return the answer to a `requests.ListPrompts` request."""
    root = Path(services.settings.workspace.root or request.cwd or ".")
    return await asyncio.to_thread(_read, request, root, services.trust)


def _read(request: ListPrompts, root: Path, trust: Trust) -> dict[str, Any]:
    root = root.expanduser()
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
            prompts.append(_row(found, prompt, root, trust))
    return {"prompts": prompts, "problems": problems}


def _row(found: PromptText, prompt: Prompt, root: Path, trust: Trust) -> dict[str, Any]:
    is_project = found.origin == "project"
    state = "allowed" if not is_project or trust.allows(root, Path(found.real), found.sha256) else "waits"
    row: dict[str, Any] = msgspec.to_builtins(prompt)
    row |= {
        "origin": found.origin,
        "label": found.label,
        "path": found.real,
        "sha256": found.sha256,
        "state": state,
        "beginning": cut_line(" ".join(m.text for m in prompt.messages)[: 4 * BEGINNING_CHARS], BEGINNING_CHARS),
    }
    if is_project:
        row["files"], notes = _inside(prompt.files, found.label, root)
        row["notes"] = [*prompt.notes, *notes]
    if state != "allowed":
        row["messages"] = []
    return row


def _inside(files: Sequence[str], label: str, root: Path) -> tuple[list[str], list[str]]:
    """Return the files that a project's prompt may attach, and notes on those outside the project or with secrets."""
    project, kept, notes = project_of(root), list[str](), list[str]()
    for name in files:
        real = Path(os.path.realpath(root / Path(name)))
        if project not in real.parents:
            notes.append(f"{label}: {name} is outside the project, so it is not attached.")
        elif is_secret(str(real)):
            notes.append(f"{label}: {name} may contain secrets, so it is not attached.")
        else:
            kept.append(str(real))  # absolute, because the editor's working folder may change
    return kept, notes
