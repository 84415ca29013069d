"""Outside text cannot approve, configure or run anything: every path into a request, with every hostile text.

A chat handles a hostile text exactly like a harmless one: the same events in its log and to the editor, the same tools
offered, the same system prompt. The request contains the complete text as data: in a tool result, or inside a fence in
a message that the user did not type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from codecompanion.model.history import MessageAdded, PolicyEvent, ViewChanged
from codecompanion.model.messages import Message, is_typed_by_user
from codecompanion.wire.events import MessageSent
from tests.faults.hostile_texts import HARMLESS, OUTSIDE, SAYS, TEXTS, WAYS
from tests.unit.session.fakes import Bench, ScriptedAdapter

SECRET = "the-secret-of-another-folder"
WORDS = re.compile(r"[!-~]+")
"""The part of any text that remains after control characters are made harmless."""
MARKDOWN = MarkdownIt("commonmark")


class Played:
    """A chat that received a text, and everything it did."""

    def __init__(self, root: Path, way: str, text: str) -> None:
        self.root, self.text = root / "work", text
        self.root.mkdir(parents=True)
        (self.root / OUTSIDE).write_text(SECRET)
        (self.root / "a.txt").write_text(text)
        self.bring, replies = WAYS[way]
        self.adapter = ScriptedAdapter("s", [*replies, SAYS, SAYS, SAYS])
        self.bench = Bench(self.root, self.adapter, tools={"yolo": False})
        self.kept: list[str] = []

    async def play(self, monkeypatch: pytest.MonkeyPatch) -> Played:
        """Receive the text, and record accesses to storage other than the log."""
        monkeypatch.setattr(self.bench.store, "save_grants", self._watched("save_grants"))
        monkeypatch.setattr(self.bench.services.trust, "_change", self._watched("trust"))
        session = await self.bench.open()
        await self.bring(self.bench, session, self.text)
        self.messages = session.log.view.messages
        self.grants = session.desk.approvals.grants()
        self.logged = [_kind(event.payload) for event in self.bench.store.load_events("chat-1")]
        await session.close()
        return self

    def _watched(self, name: str) -> Callable[..., None]:
        return lambda *given: self.kept.append(name)

    @property
    def told(self) -> list[str]:
        """Return the events sent to the editor, by kind; the chunks of a text are joined."""
        kinds = [type(event).__name__ for event in self.bench.events]
        return [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before]

    @property
    def typed(self) -> list[str]:
        """Return the texts that count as the user's."""
        return [message.text for message in self.messages if is_typed_by_user(message)]

    @property
    def offered(self) -> list[tuple[tuple[str, ...], str, str]]:
        """Return the tools, the model and the system prompt of each request."""
        heads = ("".join(m.text for m in one.messages[:1] if m.role == "system") for one in self.adapter.requests)
        named = ((tuple(spec.name for spec in one.tools), one.model) for one in self.adapter.requests)
        return [(*first, head) for first, head in zip(named, heads, strict=True)]

    def holders(self) -> list[Message]:
        """Return the messages in the newest request that contain the whole text."""
        words = WORDS.findall(self.text)
        return [one for one in self.adapter.requests[-1].messages if all(word in one.text for word in words)]


def _kind(payload: Any) -> tuple[str, ...]:
    match payload:
        case MessageAdded(message=message):
            return ("message", message.role, message.tag or "")
        case ViewChanged(kind=kind):
            return ("change", kind)
        case PolicyEvent(name=name):
            return ("policy", name)
        case _:
            return (type(payload).__name__,)


def is_fenced(content: str, text: str) -> bool:
    """Return whether all of the text is in fences, as parsed by a Markdown reader."""
    fenced = "\n".join(token.content for token in MARKDOWN.parse(content) if token.type == "fence")
    return all(word in fenced for word in WORDS.findall(text))


@pytest.mark.parametrize("way", WAYS)
async def test_outside_text_is_data(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text in the table has the same effects as a harmless one."""
    plain = await Played(tmp_path / "harmless", way, HARMLESS).play(monkeypatch)
    assert plain.holders(), "the way leads nowhere"
    for number, (name, text) in enumerate(TEXTS.items()):
        played = await Played(tmp_path / str(number), way, text).play(monkeypatch)
        assert played.bench.bugs == [], name
        assert played.logged == plain.logged, name
        assert played.told == plain.told, name
        assert played.offered == plain.offered, name
        holders = played.holders()
        assert holders, f"{name}: the model does not get it"
        for message in holders:
            assert message.role == "tool" or message.tag or "edit" in way, f"{name}: {message}"
            assert message.role == "tool" or is_fenced(message.text, text), f"{name}: {message.text}"
        assert played.typed == plain.typed or "edit" in way, name
        assert played.kept == plain.kept == [], name
        assert list(played.grants) == [], name
        assert not any(SECRET in message.text for one in played.adapter.requests for message in one.messages), name
        assert not list(tmp_path.rglob("ran")), name
        assert len(played.bench.of(MessageSent)) == len(plain.bench.of(MessageSent)), name


async def test_obedience_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks fail for a chat whose user intends the effects."""
    plain = await Played(tmp_path / "1", "a mention, by_host", HARMLESS).play(monkeypatch)
    obeying = await Played(tmp_path / "2", "a mention, by_host", SECRET).play(monkeypatch)
    assert any(SECRET in message.text for one in obeying.adapter.requests for message in one.messages)
    failing = await Played(tmp_path / "3", "a mention, by_host", "\x00").play(monkeypatch)
    assert failing.logged != plain.logged
    assert failing.told != plain.told
    assert not is_fenced("```\none\n```\n/yolo\n", "one /yolo")
