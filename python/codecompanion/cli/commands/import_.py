"""`import --from … FILE`: print another program's session in the transcript format (`:help codecompanion-cli`).

A stable contract. The plugin's own reader reads the output back before it is printed, so that every other command
accepts it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from codecompanion.cli.importing import anthropic_api, claude_code, codecompanion, openai_api, swe_agent
from codecompanion.cli.json_lines import json_line
from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.model.transcript_format import read_objects

_MAX_NAMED = 10

READERS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "claude-code": claude_code.read,
    "openai": openai_api.read,
    "anthropic": anthropic_api.read,
    "swe-agent": swe_agent.read,
    "codecompanion": codecompanion.read,
}


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "import", help="print another program's session in the transcript format"
    )
    parser.add_argument(
        "--from", dest="origin", choices=list(READERS), required=True, help="the program that wrote the file"
    )
    parser.add_argument("file", metavar="FILE|-", help="the session (-: standard input)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status. Unreadable parts are counted and listed on stderr.

    Raises:
        InputError: the file cannot be read; nothing was printed.
    """
    source = "standard input" if arguments.file == "-" else arguments.file
    skipped: list[str] = []
    messages = READERS[arguments.origin](_read_file(arguments.file), source, skipped)
    read_objects(messages, source)
    for message in messages:
        text = json_line(message)
        print(text.encode("utf-8", "backslashreplace").decode("utf-8"), file=out)
    if skipped:
        count = counted(len(skipped), "part was", "parts were")
        made = counted(len(messages), "message was", "messages were")
        print(f"warning: {count} not imported, {made}:", file=sys.stderr)
        print(*(f"  {one}" for one in skipped[:_MAX_NAMED]), sep="\n", file=sys.stderr)
        if len(skipped) > _MAX_NAMED:
            print(f"  … and {len(skipped) - _MAX_NAMED} more", file=sys.stderr)
    return 0


def _read_file(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}; expected a session of another program") from error
