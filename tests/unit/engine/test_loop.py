"""The guard and the engine's loop: nothing fails silently, closing takes limited time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecompanion.engine import log
from codecompanion.engine.loop import EngineLoop, Guard, one_sentence
from codecompanion.errors import RateLimited
from codecompanion.wire.events import Event, Notice
from tests.patience import PATIENCE_S


class EventCollector:
    """Collects the emitted events; `heard` is set with the first one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.heard = threading.Event()

    def emit(self, event: Event) -> None:
        """Keep `event`."""
        self.events.append(event)
        self.heard.set()

    @property
    def texts(self) -> list[str]:
        """The texts of the notices."""
        return [event.text for event in self.events if isinstance(event, Notice)]


@pytest.fixture
def collector() -> EventCollector:
    """Return an empty event collector."""
    return EventCollector()


@pytest.fixture
def engine(collector: EventCollector) -> Iterator[EngineLoop]:
    """Return a running loop."""
    loop = EngineLoop(Guard(collector.emit))
    yield loop
    loop.close(nothing, 0, 2)


async def nothing() -> None:
    """Do nothing."""


def test_our_own_error_keeps_its_sentence() -> None:
    """The adapter has already named the remedy."""
    assert one_sentence("x", RateLimited("Wait a minute")) == "Wait a minute"


def test_a_bug_names_its_place_and_the_log() -> None:
    """The message has one line, for any exception text."""
    text = one_sentence("drawing", ValueError("first\nsecond"))
    assert text == "Internal error in drawing (ValueError: first); see :CodeCompanion log"


class Panic(BaseException):
    """An exception like those of a native library (lesson 51)."""


@pytest.mark.parametrize("error", [ValueError("x"), Panic("x")])
def test_the_guard_reports_and_continues(collector: EventCollector, error: BaseException) -> None:
    """A panic of a native library is a BaseException and must not take the host down."""
    with Guard(collector.emit).watch("counting"):
        raise error
    assert len(collector.texts) == 1


def test_the_guard_lets_cancellation_pass(collector: EventCollector) -> None:
    """Cancelling is not a failure."""
    with pytest.raises(asyncio.CancelledError), Guard(collector.emit).watch("x"):
        raise asyncio.CancelledError
    assert not collector.events


def test_the_same_failure_is_shown_once_within_ten_seconds(collector: EventCollector) -> None:
    """A handler that fails for each of 5,000 chunks causes one notice; after ten seconds it is reported again."""
    now = 0.0
    guard = Guard(collector.emit, clock=lambda: now)
    for _ in range(100):
        guard.report("x", ValueError("same"))
    assert len(collector.texts) == 1
    now = 10.1
    guard.report("x", ValueError("same"))
    assert len(collector.texts) == 2


def test_a_failing_task_is_reported(engine: EngineLoop, collector: EventCollector) -> None:
    """Exceptions in asyncio tasks are silent without a guard."""

    async def fail() -> None:
        raise ValueError("lost")

    engine.spawn(fail(), "a task")
    assert collector.heard.wait(PATIENCE_S)
    assert "a task (ValueError: lost)" in collector.texts[0]


def test_a_failing_callback_is_reported(engine: EngineLoop, collector: EventCollector) -> None:
    """This includes a callback that only asyncio reports as unhandled."""

    async def plant() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)

    engine.spawn(plant(), "planting")
    assert collector.heard.wait(PATIENCE_S)
    assert "ZeroDivisionError" in collector.texts[0]


def test_tasks_start_in_order(engine: EngineLoop) -> None:
    """Requests of the editor must not overtake each other."""
    begun: list[int] = []
    done = threading.Event()

    async def begin(number: int) -> None:
        begun.append(number)
        if number == 99:
            done.set()

    for number in range(100):
        engine.spawn(begin(number), "x")
    assert done.wait(PATIENCE_S)
    assert begun == list(range(100))


def test_closing_waits_briefly_for_running_tasks_then_cancels(collector: EventCollector) -> None:
    """A draft that has just arrived is stored, but an endless stream is cancelled."""
    loop = EngineLoop(Guard(collector.emit))
    story: list[str] = []
    running = threading.Event()

    async def short() -> None:
        await asyncio.sleep(0.01)
        story.append("short done")

    async def endless() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            story.append("endless cancelled")

    async def last() -> None:
        story.append("closed")

    loop.spawn(short(), "short")
    loop.spawn(endless(), "endless")
    assert running.wait(PATIENCE_S)
    assert loop.close(last, grace_s=0.2, limit_s=PATIENCE_S)
    assert story == ["short done", "closed", "endless cancelled"]
    assert not collector.events


def test_closing_gives_up_if_the_runtime_hangs(collector: EventCollector) -> None:
    """Neovim kills its jobs after two seconds anyway; then nothing would be flushed."""
    loop = EngineLoop(Guard(collector.emit))

    async def hang() -> None:
        await asyncio.Event().wait()

    assert not loop.close(hang, grace_s=0, limit_s=0.05)


def test_the_log_is_shared_rotated_and_redacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lesson 44; two editors write to one file, and one of them rotates it."""
    monkeypatch.setattr(log, "MAX_BYTES", 2000)
    path = tmp_path / "deep" / "codecompanion.log"
    log.open_log(str(path), "DEBUG")
    log.register_secrets(["sk-12345678", "abc"])
    try:
        log.logger.debug("key %s and abc", "sk-12345678")
        assert "key [redacted] and abc" in path.read_text(), "three letters would blank out ordinary words"
        path.rename(path.with_suffix(".elsewhere"))  # another process rotated
        log.logger.debug("after")
        assert "after" in path.read_text()
        for number in range(100):
            log.logger.debug("line %d with sk-12345678", number)
        files = sorted(file.name for file in path.parent.iterdir())
        assert files[:3] == ["codecompanion.elsewhere", "codecompanion.log", "codecompanion.log.1"]
        assert all(file.stat().st_mode & 0o777 == 0o600 for file in path.parent.iterdir())
        assert not any("sk-12345678" in file.read_text() for file in path.parent.iterdir())
    finally:
        log.close_log()


def test_the_level_off_writes_nothing(tmp_path: Path) -> None:
    """Some people want no trace."""
    path = tmp_path / "x.log"
    log.open_log(str(path), "OFF")
    log.logger.error("something")
    log.close_log()
    assert path.read_text() == ""
