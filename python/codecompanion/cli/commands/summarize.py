"""`summarize FILE`: print the summary that a session gets without a model (`:help codecompanion-cli`)."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from codecompanion.cli.arguments import read_transcript, token_count
from codecompanion.context.ledger.ledger import summarise
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import CodeCompanionError, InputError

MAX_TOKENS = 4000


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser("summarize", help="summarise a transcript without a model")
    parser.add_argument(
        "--max-tokens",
        type=token_count,
        metavar="N|Nk",
        default=MAX_TOKENS,
        help=f"maximum tokens (default: {MAX_TOKENS})",
    )
    parser.add_argument("file", metavar="FILE|-", help="a transcript in JSON Lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        InputError: the file cannot be read, or the length is invalid.
        CodeCompanionError: no summary fits into the length.
    """
    if arguments.max_tokens < 1:
        raise InputError(f"--max-tokens {arguments.max_tokens}: expected 1 or more")
    messages = read_transcript(arguments.file).messages
    text = summarise(messages, arguments.max_tokens, MessageCounter().text)
    if not text:
        raise CodeCompanionError(f"no summary fits into {arguments.max_tokens} tokens")
    print(text.encode("utf-8", "backslashreplace").decode("utf-8"), file=out)
    return 0
