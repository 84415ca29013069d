"""Builds the end of the system prompt: system, shell, folder, branch, date, language and editor.

The block is a separate fragment. It has a date but no time of day, and a chat keeps its block as long as the provider's
cache may contain it (lesson 22, `ChatModel.read_environment`). Folder and branch names are untrusted text: each is
reduced to one line, without characters that could end its code span.
"""

from __future__ import annotations

import os
import platform
from datetime import datetime
from pathlib import Path

from codecompanion.context.shaping.prompt_shape import Fragment
from codecompanion.formats.text_files import printable
from codecompanion.session.services import EditorFacts
from codecompanion.workspace.git_head import read_head

_MAX_NAME, _MAX_PATH = 80, 400


def environment_fragment(root: Path, editor: EditorFacts, now: float) -> Fragment:
    """Return the block for a chat in the folder `root`; `now` in seconds since the epoch. Reads files, so it blocks."""
    system, date = _system(), datetime.fromtimestamp(now).astimezone().date().isoformat()
    shell = _one_line(Path(editor.shell.split(" ")[0]).name, _MAX_NAME)
    folder, branch = _one_line(str(root.absolute()), _MAX_PATH), read_head(root)
    language, nvim = _one_line(editor.language, _MAX_NAME), editor.nvim and f"Neovim {editor.nvim}"
    lines = [
        ("System", system),
        ("Shell", shell and f"{shell} (tools run commands in sh)"),
        ("Working folder", f"`{folder}`"),
        ("Git branch", branch and f"`{branch}`"),
        ("Date", date),
        ("Language", language),
        ("Editor", nvim),
    ]
    told = "\n".join(f"- {name}: {value}" for name, value in lines if value)
    short = [system, shell, f"`{folder}`", branch and f"branch `{branch}`", date, language, nvim]
    return Fragment(
        key="environment",
        label="environment",
        full=f"The user's environment:\n{told}",
        compact=f"Environment: {', '.join(filter(None, short))}.",
        source="editor",
    )


def _system() -> str:
    """Return the operating system and machine: `Linux (Debian GNU/Linux 12), x86_64`."""
    about = os.uname()
    name = about.sysname
    if name == "Darwin":
        name = f"macOS {platform.mac_ver()[0]}".strip()
    elif name == "Linux":
        try:
            release = platform.freedesktop_os_release().get("PRETTY_NAME", "")
        except OSError:
            release = ""
        name = f"Linux ({_one_line(release, _MAX_NAME)})" if release else name
    return f"{name}, {about.machine}"


def _one_line(text: str, limit: int) -> str:
    return " ".join(printable(text).split()).replace("`", "'")[:limit]
