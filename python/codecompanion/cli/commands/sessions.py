"""`sessions list|show|export|search|restore|rename|delete`: manage stored chats (`:help codecompanion-cli`)."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from codecompanion.adapters.keys.known_secrets import KnownSecrets
from codecompanion.adapters.keys.redact import redact
from codecompanion.cli import progress
from codecompanion.cli.arguments import report_no_results
from codecompanion.cli.commands.restore import add_restore, in_column, state_dir
from codecompanion.cli.environment import user_environment
from codecompanion.cli.json_lines import json_line
from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.model.history import LogEvent, MessageAdded, TitleSet, payload_type
from codecompanion.model.messages import Message
from codecompanion.model.transcript_format import write_message
from codecompanion.model.view import project
from codecompanion.session.history.titles import given_title
from codecompanion.session.storage.missing_chats import find_missing, sentence_of
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.opening import open_store
from codecompanion.store.search.parsed_question import has_words
from codecompanion.store.store import Store


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser("sessions", help="list, show, export or search stored chats")
    parser.add_argument("--data-dir", type=Path, default=None, help="folder with sessions.db (default: Neovim's)")
    actions = parser.add_subparsers(required=True, metavar="list|show|export|search|restore|rename|delete")
    listing = actions.add_parser("list", help="list the chats, one per line, newest first")
    listing.add_argument("--json", action="store_true", help="print JSON, one object per line")
    listing.add_argument("--limit", type=int, default=50, help="maximum number of chats (default: 50)")
    listing.set_defaults(act=_list)
    show = actions.add_parser("show", help="print a chat as readable text")
    show.add_argument("chat", help="id, or its first characters")
    show.set_defaults(act=_show)
    export = actions.add_parser("export", help="print a chat: as a transcript, a page (--html) or Markdown (--md)")
    export.add_argument("chat", help="id, or its first characters")
    export.add_argument("--view", action="store_true", help="export only the messages that the model would receive")
    form = export.add_mutually_exclusive_group()
    form.add_argument("--html", dest="form", action="store_const", const="html", help="export an HTML page to share")
    form.add_argument("--md", dest="form", action="store_const", const="md", help="export Markdown to share")
    export.add_argument("--no-images", action="store_true", help="leave images out of --html and --md")
    export.set_defaults(act=_export)
    search = actions.add_parser("search", help="find messages, including cleared and compacted ones, best first")
    search.add_argument("words", nargs="+", metavar="WORDS", help="question or words; the last word may be incomplete")
    search.add_argument("--chat", help="search only this chat (id or its first characters)")
    search.add_argument("--json", action="store_true", help="print JSON, one object per line")
    search.add_argument("--limit", type=int, default=20, help="maximum number of messages (default: 20)")
    search.set_defaults(act=_search)
    add_restore(actions)
    rename = actions.add_parser("rename", help="change the title of a chat")
    rename.add_argument("chat", help="id, or its first characters")
    rename.add_argument("title", nargs="+", metavar="TITLE")
    rename.set_defaults(act=_rename)
    delete = actions.add_parser("delete", help="permanently delete a chat and its checkpoints")
    delete.add_argument("chat", help="id, or its first characters")
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation; required without a terminal")
    delete.add_argument("--state-dir", type=Path, default=None, help="folder with transcripts/ (default: Neovim's)")
    delete.set_defaults(act=_delete)
    parser.set_defaults(run=run)


def data_dir() -> Path:
    """Return the plugin's subfolder of Neovim's data folder (`stdpath("data")`)."""
    base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / os.environ.get("NVIM_APPNAME", "nvim") / "codecompanion"


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        InputError: the store or the chat does not exist.
        StoreError: the store cannot be read.
    """
    folder = arguments.data_dir or data_dir()
    if "without_store" in arguments:
        status: int = arguments.without_store(arguments, folder, out)
        return status
    if not (folder / "sessions.db").exists():
        raise InputError(f"{folder / 'sessions.db'} does not exist; expected a Neovim data folder with stored chats")
    store = open_store(folder, report=lambda problem: print(f"codecompanion: {problem}", file=sys.stderr))
    try:
        status = arguments.act(store, arguments, out)
        return status
    finally:
        store.close()


def _list(store: Store, arguments: argparse.Namespace, out: TextIO) -> int:
    if arguments.limit < 1:
        raise InputError(f"--limit {arguments.limit}: expected 1 or more")
    chats = store.list_sessions(limit=arguments.limit)
    if not chats:
        print(f"codecompanion: no chats in {store.path}", file=sys.stderr)
    for info in chats:
        when = datetime.datetime.fromtimestamp(info.updated).astimezone()
        if arguments.json:
            fields = ("id", "title", "updated", "messages", "cwd", "adapter", "model", "owned")
            print(json_line({name: getattr(info, name) for name in fields}), file=out)
        else:
            title = info.title or "(no message yet)"
            print(f"{info.id}  {when:%Y-%m-%d %H:%M}  {in_column(info.messages)}  {info.model}  {title}", file=out)
    if arguments.data_dir is None:  # checkpoints of another folder are unknown
        missing = find_missing(store, CheckpointFiles(state_dir()))
        if missing:
            told = sentence_of(missing, store)
            print(f"codecompanion: {told}; `sessions restore` lists their checkpoints", file=sys.stderr)
    return 0


def _find_chat(store: Store, wanted: str) -> str:
    """Return the chat id that begins with `wanted`."""
    found = [info.id for info in store.list_sessions(limit=1_000_000) if info.id.startswith(wanted)]
    exact = [chat for chat in found if chat == wanted] or found
    if len(exact) > 1:
        raise InputError(f"{len(exact)} chat ids begin with {wanted!r}: {', '.join(exact[:5])}; expected one")
    if not exact:
        raise InputError(f"no stored chat {wanted!r}; `sessions list` shows all chats")
    return exact[0]


def _events(store: Store, wanted: str) -> Sequence[LogEvent]:
    """Return the log of the chat whose id begins with `wanted`."""
    return store.load_events(_find_chat(store, wanted))


def _search(store: Store, arguments: argparse.Namespace, out: TextIO) -> int:
    if arguments.limit < 1:
        raise InputError(f"--limit {arguments.limit}: expected 1 or more")
    words = " ".join(arguments.words)
    if not has_words(words):
        raise InputError(f"{words!r} contains no searchable word; expected letters or digits")
    chat = _find_chat(store, arguments.chat) if arguments.chat else None
    hits = store.search(words, chat_id=chat, limit=arguments.limit)
    for hit in hits:
        when = datetime.datetime.fromtimestamp(hit.ts).astimezone()
        if arguments.json:
            fields = ("chat_id", "title", "seq", "ts", "message_id", "role", "snippet")
            text = json_line({name: getattr(hit, name) for name in fields})
        else:
            snippet = " ".join(hit.snippet.split())
            text = f"{hit.chat_id}  {when:%Y-%m-%d %H:%M}  {hit.role:9}  {hit.title}: {snippet}"
        print(text.encode("utf-8", "backslashreplace").decode("utf-8"), file=out)
    if not hits:
        report_no_results(words)
    return 0


def _show(store: Store, arguments: argparse.Namespace, out: TextIO) -> int:
    for event in _events(store, arguments.chat):
        payload = event.payload
        when = datetime.datetime.fromtimestamp(event.ts).astimezone()
        if isinstance(payload, MessageAdded):
            _show_message(payload.message, f"{when:%H:%M:%S}", out)
        else:
            print(f"-- {when:%H:%M:%S} {payload_type(payload)}", file=out)
    return 0


def _show_message(message: Message, when: str, out: TextIO) -> None:
    label = f" [{message.tag}]" if message.tag else ""
    print(f"## {message.role}{label} · cycle {message.cycle} · {message.tokens} tokens · {when}", file=out)
    if message.text:
        print(message.text, file=out)
    for call in message.tool_calls:
        print(f"> {call.name}({call.arguments})", file=out)
    print(file=out)


def _export(store: Store, arguments: argparse.Namespace, out: TextIO) -> int:
    events = _events(store, arguments.chat)
    if arguments.form:
        return _share(store, events, arguments, out)
    if arguments.no_images:
        raise InputError("--no-images needs --html or --md; the transcript format only names images")
    if arguments.view:
        messages: Sequence[Message] = project(events).messages
    else:
        messages = [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]
    for message in messages:
        print(json_line(write_message(message)), file=out)
    return 0


def _share(store: Store, events: Sequence[LogEvent], arguments: argparse.Namespace, out: TextIO) -> int:
    """Print the chat as a document to share."""
    from codecompanion.session.storage.shareable_chat import shared_text

    known = KnownSecrets()
    known.learn_environment(user_environment())
    text = shared_text(
        events,
        arguments.form,
        store,
        redact=lambda text: redact(known.hide(text)),
        images=not arguments.no_images,
        view_only=arguments.view,
    )
    print(text.encode("utf-8", "replace").decode("utf-8"), end="", file=out)
    return 0


def _rename(store: Store, arguments: argparse.Namespace, out: TextIO) -> int:
    chat, title = _find_chat(store, arguments.chat), given_title(" ".join(arguments.title))
    store.append(chat, [TitleSet(title=title, by_user=True)]).result()
    print(f"{chat}  {title}", file=out)
    return 0


def _delete(store: Store, arguments: argparse.Namespace, out: TextIO) -> int:
    chat = _find_chat(store, arguments.chat)
    info = store.find_session(chat)
    about = f"{chat}  {counted(info.messages, 'message')}  {info.title}" if info else chat
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise InputError(f"nothing was deleted: {about}; without a terminal, pass --yes")
        print(f"Delete permanently: {about}  [y/N] ", end="", file=sys.stderr, flush=True)
        progress.stop()
        if not sys.stdin.readline().strip().lower().startswith("y"):
            raise InputError("nothing was deleted")
    store.acquire(chat).result()
    CheckpointFiles(arguments.state_dir or state_dir()).delete(chat)
    store.delete(chat).result()
    print(f"deleted: {about}", file=out)
    return 0
