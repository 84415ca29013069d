"""The next request of an idle chat is counted if counting is free and the size decides something."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest, OnWait
from codecompanion.errors import Overloaded
from codecompanion.model.messages import Message, Usage, with_changes
from codecompanion.session import session as session_module
from codecompanion.session.session import Session
from codecompanion.wire.events import CompactionStarted, Meter, Notice
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

CLOSE = 78_000
"""Words of a file that take about 85 % of the window, where compaction starts; the estimate is off by up to 7 %."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a chat be idle at once."""
    monkeypatch.setattr(session_module, "IDLE_S", 0.0)


def on_this_machine(tmp_path: Path, adapter: ScriptedAdapter) -> Bench:
    """Return a bench whose adapter is a server on this machine."""
    bench = Bench(tmp_path, adapter)
    entry = AdapterSettings(
        name="s", kind="offline", local_server=True, base_url="http://127.0.0.1:1", context_window=100_000
    )
    bench.services.adapters.add(adapter, entry)
    return bench


async def attach(session: Session, words: int = CLOSE, path: str = "a") -> None:
    await session.attach(Message(id=path, role="user", tag="selection", path=path, content="word " * words))


async def say(bench: Bench, session: Session, text: str = "q") -> None:
    session.submit(submit(text))
    await bench.idle(session)


def is_counting(session: Session) -> bool:
    return session._counting is not None and not session._counting.done()


@pytest.mark.parametrize(("counted", "compacts"), [(83_500, False), (86_000, True)])
async def test_the_count_of_an_idle_chat_decides_at_the_next_message(
    tmp_path: Path, counted: int, compacts: bool
) -> None:
    """The attachment is counted once, in the background; the message is estimated without a request."""
    adapter = ScriptedAdapter("s", lambda request: says("word " * 12_000), counts=[counted])
    bench = on_this_machine(tmp_path, adapter)
    session = await bench.open()
    for _ in range(4):
        await say(bench, session)
    before = session.meter.calibration
    await attach(session, CLOSE - 48_000)
    await bench.until(lambda: bench.of(Meter)[-1].tokens == counted)
    assert session.meter.count(session.log.view).exact
    assert session.meter.calibration != before
    assert bench.services.calibration("s", "scripted-1") == session.meter.calibration
    session.show_meter()
    assert not is_counting(session)
    await say(bench, session)
    assert len(adapter.counted) == 1
    assert bool(bench.of(CompactionStarted)) is compacts


@pytest.mark.parametrize("words", [2_000, 40_000])
async def test_nothing_is_asked_where_it_decides_nothing(tmp_path: Path, words: int) -> None:
    """Far from any limit, the server is not asked to count."""
    bench = on_this_machine(tmp_path, ScriptedAdapter("s", [], counts=[1]))
    session = await bench.open()
    await attach(session, words)
    assert not is_counting(session)


async def test_nothing_is_asked_when_the_count_is_known(tmp_path: Path) -> None:
    """The reply has already reported the count."""
    adapter = ScriptedAdapter("s", [says("ok", Usage(input_tokens=84_000, output_tokens=2))], counts=[84_002])
    bench = on_this_machine(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("word " * CLOSE))
    await bench.idle(session)
    assert not is_counting(session)


async def test_a_provider_does_not_see_what_the_user_has_not_sent(tmp_path: Path) -> None:
    """An attachment may still be detached; only the message that sends it may be counted."""
    adapter = ScriptedAdapter("s", [says("ok")], counts=[83_500])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await attach(session)
    assert not is_counting(session)
    await say(bench, session)
    assert len(adapter.counted) == 1


async def test_a_provider_counts_what_it_has_seen(tmp_path: Path) -> None:
    """The provider reported no usage; a reply at the end would be continued, so a placeholder message follows it."""
    adapter = ScriptedAdapter("s", [says("ok"), says("fine")], counts=[Overloaded("s: overloaded"), 83_500])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("word " * CLOSE))
    await bench.until(lambda: len(adapter.counted) == 2)
    assert [message.role for message in adapter.counted[1].messages[-2:]] == ["assistant", "user"]
    await bench.until(lambda: not is_counting(session))
    assert 83_450 < session.control.measured().tokens < 83_500
    await attach(session, 200, "b")
    assert not is_counting(session)
    assert [message.text for message in session.log.view.messages][1] == "ok"


async def test_a_provider_does_not_see_what_its_requests_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy may have sent less of a message than the view has."""
    monkeypatch.setattr(session_module, "IDLE_S", 600.0)
    adapter = ScriptedAdapter("s", [says("ok")], counts=[Overloaded("s: overloaded"), 83_500])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await say(bench, session, "word " * CLOSE)
    shaper = session.control.shaper
    assert session.control.fitting.wants_idle_count
    assert shaper.sent is not None
    shorter = (with_changes(shaper.sent.messages[0], content="word"), *shaper.sent.messages[1:])
    shaper.sent = msgspec.structs.replace(shaper.sent, messages=shorter)
    assert not session.control.fitting.wants_idle_count
    await session.close()


class Hanging(ScriptedAdapter):
    """An adapter whose first count never returns."""

    async def count_tokens(self, request: ChatRequest, on_wait: OnWait | None = None) -> int:
        if not self.counted:
            self.counted.append(request)
            await asyncio.Event().wait()
        return await super().count_tokens(request)


async def test_a_message_does_not_wait_for_the_count(tmp_path: Path) -> None:
    """The count is cancelled, as when the chat is closed."""
    adapter = Hanging("s", [says("ok")], counts=[1])
    bench = on_this_machine(tmp_path, adapter)
    session = await bench.open()
    await attach(session, CLOSE - 6_000)
    await bench.until(lambda: bool(adapter.counted))
    counting = session._counting
    session.submit(submit("q"))
    await bench.until(lambda: session.log.view.messages[-1].text == "ok")
    assert counting is not None
    assert counting.cancelled()
    await session.close()
    assert not is_counting(session)


async def test_a_count_of_a_chat_that_changes_meanwhile_is_given_up(tmp_path: Path) -> None:
    """A file attached during the count restarts it, so that both files are counted."""
    adapter = Hanging("s", [], counts=[83_500])
    bench = on_this_machine(tmp_path, adapter)
    session = await bench.open()
    await attach(session, CLOSE - 1_000)
    await bench.until(lambda: bool(adapter.counted))
    await attach(session, 1_000, "b")
    await bench.until(lambda: session.control.measured().tokens == 83_500)
    assert [len(request.messages) for request in adapter.counted] == [2, 3]


async def test_a_failed_count_is_not_shown_and_not_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The estimate decides, and the log says why."""
    caplog.set_level("INFO")
    adapter = ScriptedAdapter("s", [says("SUMMARY"), says("ok")], counts=[Overloaded("s: overloaded")] * 9)
    bench = on_this_machine(tmp_path, adapter)
    session = await bench.open()
    await attach(session)
    await bench.until(lambda: bool(adapter.counted) and not is_counting(session))
    session.show_meter()
    assert not is_counting(session)
    assert not bench.of(Notice)
    assert not bench.bugs
    assert len([record for record in caplog.records if "using the estimate" in record.message]) == 1
