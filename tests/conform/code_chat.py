"""A chat about a project under `codebuddy strict`: the code for a question, from Enter to the request.

The project is a real folder with a real index; the chat's model and the utility model (`context.utility`) are scripted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.adapters.base import ChatRequest
from codecompanion.model.chosen_code import GATHERED_EVENT
from codecompanion.model.history import PolicyEvent
from codecompanion.model.messages import GATHERED_TAG, GatheredPiece, Message
from codecompanion.session.code.indexing import build
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_options import ChunkVectors
from codecompanion.session.gather.chat_gatherer import ProjectGatherer
from codecompanion.session.session import Session
from codecompanion.wire.requests import Snapshot, Submit
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, says

SMALL = "small"
"""The adapter of the utility model."""
QUESTIONS = ("classify_question", "question_type", "search_terms")
"""The ids of the utility model's prompts."""
Replies = Mapping[str, str | Exception]


class CodeChat:
    """A chat about a project; `found` is the log's record of the code for the newest question (R-268)."""

    session: Session
    index: ProjectIndex

    def __init__(self, bench: Bench, small: ScriptedAdapter) -> None:
        self.bench, self.small, self.number = bench, small, 0
        self.defaults = bench.services.settings.context

    async def ask(self, text: str, **snapshot: Any) -> str:
        """Type a question, wait for the end of the turn, and return the code block sent before it, or ""."""
        self.number += 1
        self.session.submit(
            Submit(
                chat="chat-1",
                submit_id=self.number,
                text=text,
                snapshot=Snapshot(**snapshot),
                key=f"k{self.number}",
            )
        )
        await self.bench.idle(self.session)
        assert self.bench.bugs == []
        return self.block.text if self.block else ""

    @property
    def request(self) -> tuple[Message, ...]:
        return self.bench.adapter.requests[-1].messages

    @property
    def block(self) -> Message | None:
        before = self.request[-2]
        return before if before.tag == GATHERED_TAG else None

    @property
    def pieces(self) -> tuple[GatheredPiece, ...]:
        return self.block.gathered if self.block else ()

    @property
    def paths(self) -> list[str]:
        return [piece.path for piece in self.pieces if piece.path]

    @property
    def found(self) -> dict[str, Any]:
        records = [event.payload for event in self.bench.store.load_events("chat-1")]
        return [one for one in records if isinstance(one, PolicyEvent) and one.name == GATHERED_EVENT][-1].fields

    @property
    def asked(self) -> list[str]:
        """Return the requests to the utility model, by name."""
        return [request.messages[0].id for request in self.small.requests]

    def set(self, **context: Any) -> None:
        """Change options of `context`."""
        self.bench.services.settings = changed(self.bench.services.settings, {"context": context})


def changed(options: Any, given: Mapping[str, Any]) -> Any:
    """Return a copy of the options with these values; a table changes only the options that it names."""
    below = {
        name: changed(now, one) if isinstance(now := getattr(options, name), msgspec.Struct) else one
        for name, one in given.items()
    }
    return msgspec.structs.replace(options, **below)


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write files of a project, dated an hour ago, because an index rereads recently changed files."""
    before = time.time() - 3600
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
        os.utime(root / name, (before, before))


async def open_code_chat(
    folder: Path,
    files: Mapping[str, str],
    *,
    replies: Replies | None = None,
    policy: str = "codebuddy strict",
    window: int = 1_000_000,
    vectors: ChunkVectors | None = None,
    indexed: bool = True,
    **context: Any,
) -> CodeChat:
    """Return an idle chat of a project with these files.

    `replies` maps each question to the utility model's reply, None = no utility model; `context` are options of that
    name.
    """
    root = folder / "project"
    write(root, files)

    def of_small(request: ChatRequest) -> Reply:
        reply = (replies or {})[request.messages[0].id]
        return (reply,) if isinstance(reply, Exception) else says(reply)

    small = ScriptedAdapter(SMALL, of_small)
    model = ScriptedAdapter("model", lambda request: says("answer"))
    bench = Bench(root, model, small, window=window, settings={"policy": policy}, tools={"enabled": False})
    utility = "" if replies is None else SMALL
    chat = CodeChat(bench, small)
    chat.set(timeout_s=PATIENCE_S, utility=utility, memories={"user": str(folder / "memories.md")})
    chat.set(**context)
    index = ProjectIndex(root, folder / "cache")
    if indexed:
        build(index.root, index.path, index.choice, now_ns=time.time_ns)

    async def index_of(root: Path) -> ProjectIndex:
        if not indexed:
            raise OSError("no index here")
        return index

    chat.index = index
    bench.services.gatherer = ProjectGatherer(
        lambda: bench.services.settings.context,
        lambda: bench.services.adapters,
        index_of,
        vectors=lambda: vectors,
    )
    chat.session = await bench.open()
    return chat
