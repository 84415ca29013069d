"""Expands the values of a server entry: `${NAME}`, `${NAME:-default}`, and `cmd:…` and `file:…` where allowed.

The brace syntax comes from `.mcp.json` (Claude Code's documentation of project servers). A project's file may only
use variables, because the user might not notice that a `cmd:` value is a command.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from codecompanion.mcp.server_types import McpError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
COMMAND_S = 30.0


def expanded(text: str, environment: Mapping[str, str], where: str) -> str:
    """Return the text with its variables replaced.

    Raises:
        McpError: a variable is not set and has no default; the message names the key (`where`).
    """

    def value(match: re.Match[str]) -> str:
        found = environment.get(match[1]) or match[2]
        if found is None:
            raise McpError(f"{where}: the environment variable {match[1]} is not set")
        return found

    return _VARIABLE.sub(value, text)


def looked_up(text: str, environment: Mapping[str, str], where: str) -> str:
    """Return the expanded value of a setting in the user's own configuration. Blocks: it may run a command.

    Raises:
        McpError: the command failed, the file cannot be read, or a variable is not set.
    """
    kind, _, rest = text.partition(":")
    if kind == "file" and rest:
        try:
            return Path(expanded(rest, environment, where)).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise McpError(f"{where}: the file cannot be read ({type(error).__name__})") from error
    if kind == "cmd" and rest:
        return _printed(rest, environment, where)
    return expanded(text, environment, where)


def _printed(command: str, environment: Mapping[str, str], where: str) -> str:
    try:
        ended = subprocess.run(  # noqa: S602 the user's own command line, as for keys of adapters
            command, shell=True, capture_output=True, text=True, timeout=COMMAND_S, env=dict(environment), check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise McpError(f"{where}: the command cannot be run ({type(error).__name__})") from error
    if ended.returncode:
        raise McpError(f"{where}: the command ended with status {ended.returncode}")
    return ended.stdout.strip()
