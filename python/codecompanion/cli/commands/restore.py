"""`sessions restore`: restore a chat from its checkpoint files, without Neovim or the database (R-473, R-478).

The command is read-only: it prints the conversation in the transcript format, and its source on stderr.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from codecompanion.cli.json_lines import json_line
from codecompanion.errors import InputError, StoreError
from codecompanion.model.history import LogEvent
from codecompanion.model.transcript_format import write_message
from codecompanion.session.storage.from_checkpoint import describe, read_state
from codecompanion.store.files.checkpoints import FOLDER, CheckpointFiles
from codecompanion.store.opening import open_store


def add_restore(actions: Any) -> None:
    """Add `restore` to the actions of `sessions`."""
    parser: argparse.ArgumentParser = actions.add_parser("restore", help="print a chat from its checkpoint files")
    parser.add_argument("chat", nargs="?", default="", help="id of a chat or checkpoint (default: list all)")
    parser.add_argument("--state-dir", type=Path, default=None, help="folder with transcripts/ (default: Neovim's)")
    parser.set_defaults(without_store=restore)


def state_dir() -> Path:
    """Return the plugin's subfolder of Neovim's state folder (`stdpath("state")`)."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / os.environ.get("NVIM_APPNAME", "nvim") / "codecompanion"


def restore(arguments: argparse.Namespace, data_dir: Path, out: TextIO) -> int:
    """Print the conversation, or the list of chats that can be restored, and return the exit status.

    Raises:
        InputError: there are no checkpoints, or none for this chat.
        StoreError: the files cannot be read.
    """
    folder = arguments.state_dir or state_dir()
    if not (folder / FOLDER).is_dir():
        raise InputError(f"{folder / FOLDER} does not exist; expected a Neovim state folder with chats")
    files = CheckpointFiles(folder)
    if not arguments.chat:
        checkpoints = files.list_checkpoints()
        if not checkpoints:
            print(f"codecompanion: no checkpoints in {folder}", file=sys.stderr)
        for stored in checkpoints:
            when = datetime.datetime.fromtimestamp(stored.time / 1000).astimezone()
            about = f"{stored.kind:14}  {in_column(stored.messages)}  {stored.title}"
            print(f"{stored.id}  {when:%Y-%m-%d %H:%M}  {about}", file=out)
        return 0
    chat, _, name = arguments.chat.partition("/")
    state = read_state(files, chat, name, _events(data_dir, chat), time.time())
    print(f"codecompanion: {describe(state, chat)}", file=sys.stderr)
    for message in state.messages:
        print(json_line(write_message(message)), file=out)
    return 0


def in_column(messages: int) -> str:
    """Return a message count with its noun, padded to a fixed width for a list."""
    return f"{messages:5} {'message' if messages == 1 else 'messages':8}"


def _events(data_dir: Path, chat: str) -> list[LogEvent]:
    """Return the chat's log as a last resort, or an empty log if the database is missing or cannot be read."""
    if not (data_dir / "sessions.db").exists():
        return []
    try:
        store = open_store(data_dir)
    except StoreError as error:
        print(f"codecompanion: {error}", file=sys.stderr)
        return []
    try:
        return store.load_events(chat)
    finally:
        store.close()
