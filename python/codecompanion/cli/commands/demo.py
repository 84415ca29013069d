"""`demo`: show the plugin's main purpose with a recorded tool-using session in an actual headless Neovim.

The session and its player are in `tools/demo` of the repository, so the command works only in a checkout of the plugin.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from codecompanion.cli.arguments import token_count
from codecompanion.errors import CodeCompanionError

CHECKOUT = Path(__file__).resolve().parents[4]


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo", help="play a recorded session in a headless Neovim and show what was edited and compacted"
    )
    parser.add_argument("file", nargs="?", default="", help="a transcript (default: the built-in session)")
    parser.add_argument(
        "--window", type=token_count, metavar="N|Nk", default=0, help="context window (default: one that fills up)"
    )
    parser.add_argument("--policy", default="", help="the policy that manages the context (default: codecompanion)")
    parser.add_argument("--nvim", default="", help="Neovim to use (default: the one beside this Python or on the PATH)")
    parser.add_argument("--keep", metavar="DIR", default="", help="keep workspace and history in this new folder")
    parser.add_argument("--chat", action="store_true", help="open the chat in Neovim afterwards")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Play the session, print the report and return the exit status.

    Raises:
        InputError: the transcript cannot be read, or has no message to send.
        CodeCompanionError: there is no checkout or no Neovim, or Neovim failed.
    """
    if not (CHECKOUT / "tools" / "demo" / "play.py").exists():
        raise CodeCompanionError("the demo runs only in a checkout of the plugin: clone its repository")
    # First in the path, so that a `tools` package in the user's folder does not shadow ours.
    sys.path.insert(0, str(CHECKOUT))
    status: int = import_module("tools.demo.play").run(arguments, out)
    return status
