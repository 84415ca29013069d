"""Finds mentions of outside or secret files in a prompt from a project or an MCP server, before it is shown.

Such a prompt is less trusted than typed text: a file outside the project, or one with keys or passwords, is sent to
the model only if the user typed its name. Mentions in code and backticks count too, because text added later may
close those.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from codecompanion.formats.regex import regex
from codecompanion.prompt_library.find_prompt_files import project_of
from codecompanion.session.services import Services
from codecompanion.wire.requests import CheckMentions
from codecompanion.workspace.secret_files import is_secret

_FILE_ITEM = regex(r"#\{\s{0,20}file\s{0,20}:([^{}\n]{0,1000})\}", re.IGNORECASE)
OUTSIDE, SECRET = "is outside the project", "may contain secrets"


async def check_mentions(services: Services, request: CheckMentions) -> dict[str, str]:
    """Return the answer to a `requests.CheckMentions` request."""
    return await asyncio.to_thread(beyond, request.text, services.settings.workspace.root or request.cwd or ".")


def beyond(text: str, folder: str) -> dict[str, str]:
    """Return {mention as written: reason} for mentions of files outside the project or with secrets. Blocks."""
    from codecompanion.retrieval.mentions import place_of, written_files

    root, found = Path(folder).expanduser(), dict[str, str]()
    for item in _FILE_ITEM.finditer(text):
        name = item[1].strip()
        why = _why(name, root) or _why(place_of(name).name, root)
        if name and why:
            found[item[0]] = why
    for written, name in written_files(text):
        why = _why(name, root)
        if why == SECRET or (why and os.path.lexists(_real(name, root))):  # otherwise a decorator or a person
            found[written] = why
    return found


def _why(name: str, root: Path) -> str:
    real = _real(name, root)
    if project_of(root) not in real.parents:
        return OUTSIDE
    return SECRET if is_secret(str(real)) or is_secret(name) else ""


def _real(name: str, root: Path) -> Path:
    try:
        return Path(os.path.realpath(root / Path(name).expanduser()))
    except (OSError, RuntimeError, ValueError):  # no such user, a NUL, or a symbolic link loop
        return Path("/")
