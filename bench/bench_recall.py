"""How often `recall` finds the right message: questions about long dialogues, and about coding chats (R-516).

    python -m bench.bench_recall [PATH/locomo10.json] [--coding ../shared/data/transcripts] [--many 50000] [--json]

The dialogues are LoCoMo (Maharana et al. 2024): ten conversations of two people over months, 1,982 questions with the
messages that answer them. They are not part of this project; get them (CC BY-NC 4.0) from

    https://github.com/snap-research/locomo, file data/locomo10.json

The weights of `store.search.ranking` were fitted on every second dialogue (1, 3, 5, 7, 9); the others are held out.
`plain` is BM25 over any of the words except stop words. A coding question is derived from a later message that names
something for the first time in a long while: the name is split into words, and only earlier messages are searched.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from codecompanion.model.messages import Message
from codecompanion.model.transcript_format import read_bytes
from codecompanion.store.log.migrations import TOKENIZER
from codecompanion.store.search.chat_index import ChatIndex
from codecompanion.store.search.parsed_question import read_question

TEN = 10
APART = 8
"""Minimum number of messages between a coding question and its answer."""
PER_CHAT = 12
_IDENTIFIER = re.compile(r"[A-Za-z_][\w/.-]*(?:[_/]|[a-z][A-Z])[\w/.-]*\w")
_SENTENCE = re.compile(r"[^.!?\n]{20,240}[.!?:\n]")

Find = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the places of the messages that answer it."""

    text: str
    right: frozenset[int]


@dataclass(frozen=True, slots=True)
class Chat:
    """Messages and the questions about them."""

    messages: tuple[Message, ...]
    questions: tuple[Question, ...]


@dataclass(slots=True)
class Score:
    """The number of questions, of answers found first and among the first ten, and the times in ms."""

    asked: int = 0
    first: int = 0
    ten: int = 0
    times: list[float] | None = None

    def add(self, found: Sequence[int], right: frozenset[int], ms: float) -> None:
        """Count one question."""
        self.asked += 1
        self.first += bool(found) and found[0] in right
        self.ten += not right.isdisjoint(found[:TEN])
        self.times = [*(self.times or []), ms]

    def line(self) -> str:
        """Return the figures."""
        times = sorted(self.times or [0.0])
        p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
        shares = f"first {self.first / self.asked:.3f}   ten {self.ten / self.asked:.3f}"
        return f"{self.asked:5} questions   {shares}   ms p50 {p50:.1f} p95 {p95:.1f}"


def read_dialogues(path: Path, *, named: bool) -> list[Chat]:
    """Return the dialogues; `named`: each text begins with its speaker."""
    return [_dialogue(one, named=named) for one in json.loads(path.read_text("utf-8"))]


def _dialogue(one: dict, *, named: bool) -> Chat:
    told, messages, places = one["conversation"], [], {}
    for key in sorted((k for k in told if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:])):
        when = datetime.datetime.strptime(told[f"{key}_date_time"].replace(",", ""), "%I:%M %p on %d %B %Y")
        for turn in told[key]:
            places[turn["dia_id"]] = len(messages)
            role = "user" if turn["speaker"] == told["speaker_a"] else "assistant"
            text = f"{turn['speaker']}: {turn['text']}" if named else turn["text"]
            messages.append(Message(id=turn["dia_id"], role=role, content=text, ts=when.timestamp()))
    questions = []
    for asked in one["qa"]:
        marks = re.findall(r"D(\d+):(\d+)", " ".join(asked.get("evidence", ())))
        names = (f"D{int(session)}:{int(turn)}" for session, turn in marks)
        right = frozenset(places[name] for name in names if name in places)
        if right:
            questions.append(Question(asked["question"], right))
    return Chat(tuple(messages), tuple(questions))


def read_coding(folder: Path) -> Iterator[Chat]:
    """Yield the beginnings of coding chats, each with one question derived from the next message."""
    for path in sorted(folder.glob("*/*.jsonl")):
        messages = read_bytes(path.read_bytes().split(b"\n"), str(path)).messages
        yield from _coding_questions(messages, random.Random(path.name))


def _coding_questions(messages: Sequence[Message], draw: random.Random) -> Iterator[Chat]:
    said = [message.text + "".join(f"\n{call.arguments}" for call in message.tool_calls) for message in messages]
    made = []
    for place in range(APART + 2, len(messages)):
        if messages[place].role not in ("assistant", "user"):
            continue
        sentences = _SENTENCE.findall(messages[place].text[:4_000])
        for name, sentence in ((n, s) for s in sentences for n in dict.fromkeys(_IDENTIFIER.findall(s))):
            right = frozenset(at for at in range(place) if name in said[at] and messages[at].role != "system")
            if len(name) > 5 and 0 < len(right) <= 3 and max(right) < place - APART:
                words = re.sub(r"([a-z])([A-Z])|[_/.-]", r"\1 \2", name)
                made.append((place, Question(sentence.replace(name, words).strip(), right)))
    for place, question in draw.sample(made, min(PER_CHAT, len(made))):
        yield Chat(tuple(messages[:place]), (question,))


def plain(chat: Chat) -> Find:
    """Return the baseline search."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{TOKENIZER}')")
    connection.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", enumerate(m.text for m in chat.messages))

    def find(query: str) -> list[int]:
        terms = read_question(query, datetime.date(2000, 1, 1)).terms
        words = dict.fromkeys(word for term in terms for word in re.findall(r'"(\w+)"', term.in_text)[:1])
        expression = " OR ".join(f'"{word}"' for word in words if re.search(rf"\b{word}\b", query.lower()))
        if not expression:
            return []
        found = connection.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 10", (expression,))
        return [row for (row,) in found]

    return find


def ranked(chat: Chat) -> Find:
    """Return our search."""
    index = ChatIndex(chat.messages)
    return lambda query: index.find(query, TEN)


def measure(chats: Sequence[Chat], search: Callable[[Chat], Find]) -> Score:
    """Return the score of a search."""
    score = Score()
    for chat in chats:
        find = search(chat)
        for question in chat.questions:
            began = time.perf_counter()
            found = find(question.text)
            score.add(found, question.right, (time.perf_counter() - began) * 1e3)
    return score


def measure_size(chats: Sequence[Chat], count: int) -> str:
    """Return the cost of a search in one chat of `count` messages, drawn from all chats."""
    draw, pool = random.Random(1), [message for chat in chats for message in chat.messages]
    began = time.process_time()
    index = ChatIndex([draw.choice(pool) for _ in range(count)])
    built, times = time.process_time() - began, []
    for question in draw.sample([q for chat in chats for q in chat.questions], 200):
        began = time.process_time()
        index.find(question.text, 20)
        times.append((time.process_time() - began) * 1e3)
    times.sort()
    return f"built in {built:.2f} s, a query p50 {times[100]:.1f} ms, p95 {times[190]:.1f} ms (processor time)"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", metavar="locomo10.json")
    parser.add_argument("--coding", type=Path, help="a folder of transcripts")
    parser.add_argument("--many", type=int, default=50_000, help="messages of the chat that times are taken with")
    parser.add_argument("--json", action="store_true", help="print the figures of the coding chats as JSON")
    arguments = parser.parse_args()
    if arguments.file:
        print_dialogues(arguments.file, arguments.many)
    if arguments.coding:
        print_coding(arguments.coding, as_json=arguments.json)


def print_dialogues(file: Path, many: int) -> None:
    """Print how often a question about a dialogue finds its answer, and how long it takes."""
    for named in (True, False):
        chats = read_dialogues(file, named=named)
        for label, part in (("fitted on", chats[::2]), ("held out", chats[1::2]), ("all", chats)):
            for name, search in (("plain", plain), ("ours", ranked)):
                form = "with names" if named else "bare text"
                print(f"{form:10} {label:9} {name:5} {measure(part, search).line()}", flush=True)
    print(f"{many} messages: {measure_size(chats, many)}")


def print_coding(folder: Path, *, as_json: bool) -> None:
    """Print how often a coding question finds its answer."""
    asked = list(read_coding(folder))
    scores = {"plain": measure(asked, plain), "ours": measure(asked, ranked)}
    if as_json:
        shares = {name: (one.first / one.asked, one.ten / one.asked) for name, one in scores.items()}
        print(json.dumps(shares | {"asked": len(asked)}))
        return
    for name, score in scores.items():
        print(f"coding               {name:5} {score.line()}", flush=True)


if __name__ == "__main__":
    main()
