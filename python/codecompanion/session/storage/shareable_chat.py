"""Turns a stored chat into a document to share: reads its log, hides keys and the home folder, writes the document.

`reports.export` renders the document; images come from the store. A missing image is named but left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from codecompanion import __version__
from codecompanion.adapters.keys.redact import redact as hide_shapes
from codecompanion.errors import InputError, StoreError
from codecompanion.model.history import LogEvent, MessageAdded
from codecompanion.reports.export.as_html import chat_as_html
from codecompanion.reports.export.as_markdown import chat_as_markdown
from codecompanion.reports.export.reading import Reader, chat_title, read_conversation
from codecompanion.session.services import Services
from codecompanion.store.store import Store
from codecompanion.wire.requests import ExportChat

Form = Literal["html", "md"]
MAX_NAME = 60
_AFTER_HOME = r"(?![\w.-])"
"""Pattern for the end of the home folder's name: `/home/ann` does not match in `/home/anna`."""


def shared_text(
    events: Sequence[LogEvent],
    form: Form,
    store: Store,
    *,
    redact: Callable[[str], str],
    images: bool = True,
    view_only: bool = False,
) -> str:
    """Return the document. `redact` hides keys; `view_only`: only messages that would be sent to the model."""

    def image(sha256: str) -> bytes | None:
        try:
            return store.read_blob(sha256)
        except StoreError:
            return None

    shorten = home_shortener()
    reader = Reader(lambda text: shorten(redact(text)), image if images else None)
    chat = read_conversation(events, reader, view_only=view_only)
    zone = datetime.now().astimezone().tzinfo or UTC
    write = chat_as_html if form == "html" else chat_as_markdown
    return write(chat, zone=zone, version=__version__)


def home_shortener() -> Callable[[str], str]:
    """Return a function that replaces the user's home folder with `~` in a string."""
    try:
        home = str(Path.home())
    except RuntimeError:
        return lambda text: text
    if len(home) < 2:
        return lambda text: text  # the root folder is not a home
    pattern = re.compile(re.escape(home) + _AFTER_HOME)
    return lambda text: pattern.sub("~", text) if home in text else text


def export_chat(services: Services, request: ExportChat) -> dict[str, Any]:
    """Write the chat to a new file; return `{path, kilobytes}`. Blocks.

    Raises:
        InputError: the chat has no messages, the file exists already, or it cannot be written.
        StoreError: the log cannot be read.
    """
    events = services.store.load_events(request.chat, 0)
    if not any(isinstance(event.payload, MessageAdded) for event in events):
        raise InputError("Nothing to export: this chat is empty.")
    redact = services.keeping.redact if services.keeping else hide_shapes
    text = shared_text(events, request.form, services.store, redact=redact)
    path = (
        Path(request.path) if request.path else _free_name(Path(request.cwd), redact(chat_title(events)), request.form)
    )
    try:
        with path.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} already exists; choose another name.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a valid file name"
        raise InputError(f"{path} cannot be written: {reason}.") from error
    return {"path": str(path), "kilobytes": -(-len(text) // 1024)}


def _free_name(folder: Path, title: str, form: Form) -> Path:
    """Return an unused file name in the folder, built from the words of the title."""
    words = "-".join(re.findall(r"[^\W_]+", title.lower()))[:MAX_NAME].strip("-") or "chat"
    path, number = folder / f"{words}.{form}", 2
    while path.exists():
        path, number = folder / f"{words}-{number}.{form}", number + 1
    return path
