"""Reads arguments shared by several commands: sizes, and transcripts in files or on standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from codecompanion.counting.token_sizes import TOKEN_FORMS, parse_tokens
from codecompanion.errors import InputError
from codecompanion.model.transcript_format import A_MESSAGE, Transcript, read_bytes

STDIN = "standard input"
MAX_SHOWN_NAME = 200
Options = TypeVar("Options", bound=msgspec.Struct)


def options_of(options: Options, arguments: argparse.Namespace) -> Options:
    """Return the options of a job; missing or null options are taken from the command line."""
    missing = [name for name in options.__struct_fields__ if getattr(options, name) is None]
    return msgspec.structs.replace(options, **{name: getattr(arguments, name) for name in missing})


def token_count(text: str) -> int:
    """Return the number of tokens in `32000`, `32k` or `1M`; a number that is too small is refused later."""
    try:
        return parse_tokens(text) if text[-1:] in ("k", "K", "m", "M") else int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected {TOKEN_FORMS}, found {text!r}") from error


def budget_of(value: int | str | None) -> int | None:
    """Return the tokens of a budget in a job (a number, or text as in `token_count`), or None if it is not specified.

    Raises:
        InputError: the value is not a token count, or is below 0.
    """
    try:
        tokens = token_count(value) if isinstance(value, str) else value
    except argparse.ArgumentTypeError as error:
        raise InputError(f"budget: {error}") from error
    if tokens is not None and tokens < 0:
        raise InputError(f"budget is {tokens}; expected 0 or more tokens")
    return tokens


def existing_folder(name: str, option: str) -> Path:
    """Return the folder of that name, with `~` expanded; `option` is the option that contained it, for error messages.

    Raises:
        InputError: the folder does not exist, or the name is invalid.
    """
    try:
        for folder in (Path(name), Path(name).expanduser()):
            if folder.is_dir():
                return folder
    except (OSError, ValueError, RuntimeError):  # too long, half a surrogate pair, unknown home
        pass
    shown = name if len(name) <= MAX_SHOWN_NAME else f"{name[:MAX_SHOWN_NAME]}…"
    raise InputError(f"{option} {shown}: there is no such folder")


def source_of(name: str) -> str:
    """Return the name of an input for messages; `-` is standard input."""
    return STDIN if name == "-" else name


def read_input(name: str, expected: str) -> Iterable[bytes]:
    """Return the lines of a file or of standard input (`-`).

    Raises:
        InputError: the input cannot be read; the message gives its name and the expected content.
    """
    if name == "-":
        if sys.stdin.isatty():
            print(f"codecompanion: reading {expected} from the terminal; Ctrl-D ends it", file=sys.stderr)
        return sys.stdin.buffer
    try:
        return Path(name).read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}; expected {expected}") from error


def read_transcript(name: str) -> Transcript:
    """Return the transcript in a file or on standard input (`-`).

    Raises:
        InputError: the input cannot be read, is not a transcript, or is empty; the message gives the file, line and
            expected content.
    """
    transcript = read_bytes(read_input(name, "a transcript in JSON Lines"), source_of(name))
    if not transcript.messages:
        raise InputError(f"{source_of(name)}: no messages in it; expected {A_MESSAGE}")
    return transcript


def report_no_results(words: str) -> None:
    """Report on stderr that a search has no results; this is a valid answer, so the exit status stays 0."""
    print(f"codecompanion: nothing found for {words!r}", file=sys.stderr)
