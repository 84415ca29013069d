"""Fixtures for the store tests: a folder, a store that is closed, a counting clock, the reports."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codecompanion.errors import StoreError
from codecompanion.model.history import ChatCreated, LogEvent, MessageAdded
from codecompanion.model.messages import Message, Role
from codecompanion.store.log.scratch import Calibration
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store

PYTHON_DIR = Path(__file__).resolve().parents[3] / "python"
CREATED = ChatCreated(adapter="offline", model="m", policy="codecompanion", cwd="/work")


def said(text: str, role: Role = "user", number: int = 0) -> MessageAdded:
    """Return a message of the log."""
    return MessageAdded(message=Message(id=f"m{number}", role=role, content=text))


def sound(path: Path) -> bool:
    """Return whether SQLite finds nothing wrong with the file."""
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    finally:
        connection.close()


class Desk:
    """Opens stores in one folder, closes them at the end, and keeps their reports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1_000.0
        self.reports: list[StoreError] = []
        self._open: list[Store] = []

    @property
    def path(self) -> Path:
        return self.folder / "sessions.db"

    def clock(self) -> float:
        self.now += 1.0
        return self.now

    def open(self) -> Store:
        store = open_store(self.folder, self.clock, self.reports.append)
        self._open.append(store)
        return store

    def close(self) -> None:
        for store in self._open:
            store.close()


def fill(desk: Desk, chats: int = 4, messages: int = 60) -> dict[str, list[LogEvent]]:
    """Write a database of a few hundred pages and close it; returns its content."""
    store = desk.open()
    for chat in range(chats):
        for number in range(messages):
            store.append(
                f"chat{chat}", [said(f"{chat} {number} " + "lorem ipsum " * (900 if number % 9 == 0 else 150))]
            )
    store.save_draft("chat0", "draft")
    store.save_calibration(Calibration("openai", "x", 1.5, 2)).result()
    expected = {f"chat{chat}": store.load_events(f"chat{chat}") for chat in range(chats)}
    store.close()
    assert not desk.path.with_name("sessions.db-wal").exists()
    return expected


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "data")
    yield desk
    desk.close()


@pytest.fixture
def store(desk: Desk) -> Store:
    return desk.open()


Start = Callable[..., subprocess.Popen[str]]

PREAMBLE = """
import os, resource, signal, sys
from pathlib import Path
from codecompanion.model.history import ChatCreated, LogEvent, MessageAdded
from codecompanion.model.messages import Message
from codecompanion.store.opening import open_store
def said(text, role="user"):
    return MessageAdded(message=Message(id="m0", role=role, content=text))
def tell(*words):
    print(*words, flush=True)
folder = Path(sys.argv[1])
"""


@pytest.fixture
def start(desk: Desk) -> Iterator[Start]:
    """Start a Python process that has a store folder; it is killed at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def run(program: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(program), str(desk.folder), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PYTHON_DIR)},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()
