"""Search in a stored chat of 500, 5,000 and 50,000 generated messages: wall and CPU time of a query.

`sessions search` of the command line searches all chats. `recall`, the model's tool and the list of
`:CodeCompanionRecall`, searches the messages removed from the context of one chat: here all but its last turns.
`bench.bench_recall` measures how often the right message is found.
"""

from __future__ import annotations

import itertools
import random
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure, Measurement, Samples
from bench.histories import store_messages
from bench.plugins import Side
from bench.working_area import Room
from codecompanion.model.history import ViewChanged
from codecompanion.model.messages import Message
from codecompanion.model.view import project
from codecompanion.session.chat.removed_messages import Removed
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.store.opening import open_store

CHAT = "be0c5000be0c5000be0c5000"
WORDS = ["".join(parts) for parts in itertools.product(("ba", "co", "di", "fu", "le", "mo", "ri", "su"), repeat=4)]
"""4,096 words; the n-th is used about 1/n as often as the first, as in natural language."""
COMMONNESS = list(itertools.accumulate(1 / (rank + 2) for rank in range(len(WORDS))))
IN_VIEW = 20
WARM_UP = 3


def chat_search(side: Side, size: int, room: Room) -> Samples:
    """Search for words of some message, different ones in each run; the chat is stored once for all runs."""
    root = room.once(("searched chat", size), lambda: _store(room.fresh("searched"), size))
    run = next(room.once(("chat searches", size), itertools.count))
    asked = _questions(size, len(room.times(40)) + WARM_UP, run)
    store = open_store(root)
    try:
        removed = Removed(store, ChatLog(store, CHAT, project(store.load_events(CHAT))), lambda: root)
        everywhere = _time(store.search, asked)
        recall = _time(removed.find, asked)
    finally:
        store.close()
    return {"wall": everywhere[0], "cpu": everywhere[1], "recall": recall[0], "recall_cpu": recall[1]}


def _time(search: Callable[[str], Sequence[Any]], asked: Sequence[str]) -> tuple[list[float], list[float]]:
    """Return the wall and CPU milliseconds of each query, without the first few."""
    wall, cpu = list[float](), list[float]()
    for text in asked:
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        search(text)
        took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
        wall.append(took * 1000)
        cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return wall[WARM_UP:], cpu[WARM_UP:]


def _store(root: Path, size: int) -> Path:
    """Write the chat, and a change that removes all but its last messages from the context."""
    history = _messages(size)
    cleared = ViewChanged(change_id="c1", kind="cleared", removed=tuple(one.id for one in history[:-IN_VIEW]))
    store_messages(root, history, CHAT, cleared)
    return root


def _messages(size: int) -> list[Message]:
    """Return questions and answers of 20 to 120 words; the same ones every time."""
    chosen, made = random.Random(22), list[Message]()
    for number in range(size):
        text = " ".join(chosen.choices(WORDS, cum_weights=COMMONNESS, k=chosen.randint(20, 120)))
        turn = number // 2 + 1
        role = "assistant" if number % 2 else "user"
        made.append(Message(role=role, content=text, id=f"m{number}", cycle=turn, turn_id=f"t{turn}", tokens=100))
    return made


def _questions(size: int, count: int, run: int) -> list[str]:
    """Return two to eight words of some message each."""
    chosen, texts = random.Random(run), [one.text.split() for one in _messages(min(size, 500))]
    return [" ".join(chosen.sample(chosen.choice(texts), chosen.randint(2, 8))) for _ in range(count)]


MEASUREMENTS = (
    Measurement(
        "chat_search",
        "Searching stored chats",
        (
            Figure("wall", "all chats, p95", of="p95"),
            Figure("cpu", "all chats: CPU time, p95", of="p95"),
            Figure("recall", "removed messages of a chat (recall), p95", of="p95"),
            Figure("recall_cpu", "removed messages of a chat: CPU time, p95", of="p95"),
        ),
        chat_search,
        sizes=(500, 5_000, 50_000),
        quick_sizes=(100,),
        size_unit="messages",
        note="Word frequencies are those of natural language; all messages are in one chat.",
    ),
)
