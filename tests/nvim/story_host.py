"""The host of a buffer story: scripted adapters, gathered code, the editor's texts and the files on disk."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

from codecompanion.adapters.base import ChatRequest, ReasoningDelta
from codecompanion.model.gathered import Gathered, Selection, Snippet
from codecompanion.session.codebase.gatherer import Question
from codecompanion.wire.requests import EditorItem, EditorText
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says

POLICIES = ("codecompanion", "codebuddy", "adaptive", "cowork", "cowork_chat", "kodacode")
SUMMARY = """1. Primary Request and Intent: go on.

## 7. Pending Work
nothing

## 8. Current State
fine
"""


class Finds:
    """Finds code for every question that asks for it, occasionally none."""

    def __init__(self, lines: int) -> None:
        self.lines, self.asked = lines, 0

    async def gather(self, question: Question, tell: Callable[[str], None]) -> Gathered:
        tell("looking")
        self.asked += 1
        if self.asked % 5 == 0:
            return Gathered(question=question.text)
        text = f"### File: f{self.asked}.py\n" + "x = 1\n" * self.lines
        found = (Snippet(path=f"f{self.asked}.py", start=1, end=self.lines, text=text, score=0.5),)
        return Gathered(question=question.text, text=text, selection=Selection(snippets=found), ms=7)


def make_bench(root: Path, chance: random.Random, policy: str) -> Bench:
    """Return a host whose models talk, think and call tools in turn, and whose windows fill up quickly."""
    numbers = itertools.count()

    def answer(request: ChatRequest) -> Reply:
        if request.purpose == "summary":
            return says(SUMMARY)
        number = next(numbers)
        if request.messages[-1].role == "tool" and number % 3:
            return says(f"answer {number} " + "word " * (number % 5 * 20))
        if number % 4 == 0:
            return (ReasoningDelta(f"thought {number}"), *says(f"said {number}"))
        wanted = [(f"c{number}-{part}", "read_file", '{"path": "a.txt"}') for part in range(1 + number % 2)]
        return calls(*wanted, text=f"looking {number}" if number % 3 == 0 else "")

    adapters = (ScriptedAdapter("s", answer), ScriptedAdapter("other", answer))
    managed = {"editing": {"trigger": 0.5}, "compaction": {"trigger": 0.8, "min_token_savings": 1}}
    settings = {"policy": policy, "context_management": managed, "on_compact": "stop"}
    bench = Bench(root, *adapters, window=chance.choice((3_000, 5_000, 20_000)), settings=settings)
    bench.services.gatherer = Finds(chance.choice((20, 400)))
    return bench


def any_item(root: Path, chance: random.Random) -> EditorItem:
    """Return an editor item for a message to mention; occasionally a missing one."""
    name = f"live{chance.randrange(3)}.txt"
    shown = EditorText("x = 1\n" * chance.choice((1, 20, 2_000)), path=str(root / "b.py"), first=1, whole=True)
    other = EditorText("y\n" * 9, path=str(root / "c.py"))
    terminal = EditorText("$ make\n" * 300, "the terminal")
    return chance.choice(
        (
            EditorItem("#{buffer}", "buffer", texts=(shown,)),
            EditorItem("#{buffers}", "buffers", texts=(shown, other)),
            EditorItem("#{terminal}", "terminal", texts=(terminal,), keep="tail"),
            EditorItem("#{quickfix}", "quickfix", nothing="the list is empty"),
            EditorItem("#{lsp}", "lsp", texts=(EditorText("def f(): ...", "definition"),), comes="later"),
            EditorItem(f"#{{file:{name}}}", "file", name, comes="by_host"),
            EditorItem("#{file:a.txt:1-2}", "file", "a.txt:1-2", comes="by_host"),
        )
    )


def change_file(root: Path, chance: random.Random) -> str:
    """Let another program write one of the attachable files: longer, shorter, huge, binary, deleted."""
    path = root / f"live{chance.randrange(3)}.txt"
    before = path.read_bytes() if path.exists() else b""
    match chance.randrange(6):
        case 0:
            path.unlink(missing_ok=True)
        case 1:
            path.write_bytes(b"\x00\xff" * 40)
        case 2:
            path.write_text("a word and another\n" * 5_000)
        case 3:
            path.write_bytes(before[: len(before) // 2])
        case _:
            path.write_bytes(before[-400:] + b"line %d\n" % chance.randrange(100))
    return path.name
