"""A chat never exceeds its window: text that is too large is truncated, summarised or refused (R-524).

The provider here enforces nothing and reports no usage: requests are counted by their characters.
"""

from __future__ import annotations

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import ContextOverflow, NetworkFailed, StoreUnavailable
from codecompanion.model.history import MessageAdded, RequestSent
from codecompanion.model.messages import Message, Usage
from codecompanion.session.chat.buffer_entries import entries
from codecompanion.session.compaction.summary_sources import full_history
from codecompanion.wire.events import Notice, SubmitFailed, TurnFinished
from codecompanion.wire.requests import Snapshot
from tests.amounts import amount
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

COUNT = MessageCounter()


def size(request) -> int:
    """Return the estimate of a whole request."""
    return COUNT.count_messages(request.messages) + COUNT.tools(request.tools)


def sent(adapter: ScriptedAdapter) -> list[int]:
    return [size(request) for request in adapter.requests if request.purpose == "chat"]


async def test_a_message_that_can_never_fit_returns_before_it_is_logged(tmp_path):
    """The sentence names the largest part and a remedy; the chat continues."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=8_000, tools={"enabled": False})
    session = await bench.open()
    session.submit(submit("word " * 20_000))
    await bench.idle(session)
    [back] = bench.of(SubmitFailed)
    assert back.text == "word " * 20_000
    assert back.error.startswith("Not sent: ")
    assert "7,600 fit; your message takes" in back.error
    assert back.error.endswith("Your message is back in the input.")
    assert bench.of(TurnFinished)[-1].reason == "limit"
    assert adapter.requests == []
    assert session.log.view.messages == ()
    session.submit(submit("short", 2))
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "ok"


@pytest.mark.parametrize("fails", ["the trace", "the count"])
async def test_a_refused_message_returns_once_even_if_nothing_can_be_written(tmp_path, monkeypatch, fails):
    """A failure before a turn ends it: it is not retried endlessly with the same message."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=8_000, tools={"enabled": False}, settings={"policy": "kodacode"})
    session = await bench.open()

    def full(*_):
        raise StoreUnavailable("the disk is full")

    if fails == "the trace":
        monkeypatch.setattr(type(bench.store), "append", full)
    else:
        monkeypatch.setattr(type(session.queue), "refused", full)
    session.submit(submit("word " * 20_000))
    await bench.idle(session)
    assert [back.text for back in bench.of(SubmitFailed)] == ["word " * 20_000]
    assert [notice.text for notice in bench.of(Notice)] == ["the disk is full"]
    assert fails == "the count" or "7,600 fit; your message takes" in bench.of(SubmitFailed)[0].error


async def test_a_huge_queued_message_returns_and_the_others_are_sent(tmp_path):
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=8_000, tools={"enabled": False})
    session = await bench.open()
    session.submit(submit("first"))
    session.submit(submit("word " * 20_000, 2))
    session.submit(submit("third", 3))
    await bench.idle(session)
    assert [back.submit_id for back in bench.of(SubmitFailed)] == [2]
    assert [m.text for m in session.log.view.messages if m.role == "user"] == ["first", "third"]


async def test_a_system_prompt_larger_than_the_window_is_named(tmp_path):
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=4_000, settings={"system_prompt": "rule " * 9_000})
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    assert adapter.requests == []
    assert "system prompt and tools take" in bench.of(TurnFinished)[-1].error


async def test_an_assumed_window_refuses_nothing(tmp_path):
    """R-506: the limit is unknown; the provider decides."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=0, tools={"enabled": False})
    session = await bench.open()
    session.submit(submit("word " * 60_000))
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "ok"


@pytest.mark.parametrize("policy", policy_names())
async def test_a_first_result_larger_than_the_window_is_truncated_before_sending(tmp_path, policy):
    """Seen: 261k characters under kodacode at 64k were sent as 78k tokens. The log keeps the whole."""
    text = "".join(f"line {number} of a large file\n" for number in range(14_000))
    (tmp_path / "a.txt").write_text(text)
    replies = [calls(("c1", "read_file", '{"path": "a.txt"}')), says("done")]
    adapter = ScriptedAdapter("s", replies)
    bench = Bench(tmp_path, adapter, window=64_000, settings={"policy": policy}, tools={"max_result_chars": 1_000_000})
    session = await bench.open()
    session.submit(submit("read it"))
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "done"
    assert len(adapter.requests) == 2
    assert max(sent(adapter)) <= 64_000 - 4_096
    [result] = [m for m in adapter.requests[-1].messages if m.role == "tool"]
    assert result.text.startswith("1\tline 0") or "line 0 " in result.text[:200]
    assert "line 13999" in result.text[-200:]
    assert "left out" in result.text
    logged = [event.payload.message for event in await session.log.events() if isinstance(event.payload, MessageAdded)]
    assert any(message.role == "tool" and len(message.text) > 261_000 for message in logged)


@pytest.mark.slow("every policy in every window")
@pytest.mark.parametrize("window", [4_000, 8_000])
@pytest.mark.parametrize("policy", policy_names())
async def test_a_failing_summariser_and_a_server_that_enforces_nothing(tmp_path, policy, window):
    """Seen: 118 % to 662 % of an 8k window, and 99.7 % with no room for a reply (R-507)."""
    fails = (NetworkFailed("The provider is down."),)
    adapter = ScriptedAdapter("s", lambda r: fails if r.purpose == "summary" else says("word " * 700))
    bench = Bench(tmp_path, adapter, window=window, settings={"policy": policy})
    session = await bench.open()
    for number in range(1, 25):
        session.submit(submit(f"question {number}: " + "please " * 50, number))
        await bench.idle(session)
    assert len(sent(adapter)) == 24, bench.of(TurnFinished)[-1]
    assert max(sent(adapter)) <= window - window // 20
    assert session.log.view.messages[-1].text.startswith("word")


async def ask_claude(tmp_path, *counts, estimated: int = 7_200):
    """Send a first message to a Claude that returns this count, or cannot count; return the bench.

    By the estimate alone, 7,200 tokens fit beside a reply; as Claude counts them (1.22), they do not.
    """
    adapter = ScriptedAdapter("s", lambda request: says("ok"), counts=counts)
    adapter.default_model = "claude-sonnet-4-5"
    bench = Bench(tmp_path, adapter, window=8_421, tools={"enabled": False}, settings={"system_prompt": "."})
    session = await bench.open()
    text = "word " * (estimated * 1000 // COUNT.text("word " * 1000))
    assert abs(COUNT.text(text) - estimated) < 20
    session.submit(submit(text))
    await bench.idle(session)
    return bench


async def test_a_message_over_the_window_by_the_best_guess_is_not_sent_to_a_model_without_reports(tmp_path):
    """R-524: the facts about a model's family are part of the guess, also before its first report."""
    bench = await ask_claude(tmp_path)
    assert bench.adapter.requests == []
    [back] = bench.of(SubmitFailed)
    assert back.error.startswith("Not sent: 8,")


async def test_a_message_that_fits_by_the_best_guess_is_sent(tmp_path):
    """The bounds of a cold guess block nothing: 7,600 tokens, give or take 1,100, in a window of 8,000."""
    bench = await ask_claude(tmp_path, estimated=6_200)
    assert bench.of(SubmitFailed) == []
    assert len(bench.adapter.requests) == 1


@pytest.mark.parametrize("is_own", [False, True])
async def test_in_doubt_a_counting_provider_is_asked_and_a_fitting_message_sent(tmp_path, monkeypatch, is_own):
    """A cold estimate refuses nothing that fits, and the request is as large as counted."""
    monkeypatch.setattr("codecompanion.session.window.fit_check.runs_on_own_server", lambda *_: is_own)
    bench = await ask_claude(tmp_path, 7_400, 7_400, 7_400)
    assert bench.of(SubmitFailed) == []
    payloads = [event.payload for event in bench.store.load_events("chat-1")]
    assert [one.estimated_tokens for one in payloads if isinstance(one, RequestSent)] == [7_400]


async def test_a_message_too_large_by_the_providers_count_is_not_sent_and_the_count_reported(tmp_path):
    bench = await ask_claude(tmp_path, 9_111)
    assert bench.adapter.requests == []
    assert bench.of(SubmitFailed)[0].error.startswith("Not sent: 9,111 tokens, 8,000 fit")


async def test_if_a_provider_fails_to_count_the_guess_decides(tmp_path):
    bench = await ask_claude(tmp_path, NetworkFailed("down"))
    assert bench.adapter.requests == []
    assert bench.of(SubmitFailed)[0].error.startswith("Not sent: 8,")


async def test_no_provider_is_asked_about_a_message_too_large_for_any_tokenizer(tmp_path):
    bench = await ask_claude(tmp_path, 7_000, estimated=12_000)
    assert bench.adapter.counted == []
    assert len(bench.of(SubmitFailed)) == 1


def smaller_than_believed(request):
    """Answer like a server with a window of 6,000 tokens, reported in a refusal, and with false usage."""
    if size(request) > 6_000:
        return (ContextOverflow("s: the request is too long for the model.", 0, 6_000),)
    return says("A summary of it. " * 20 if request.purpose == "summary" else "word " * 300, Usage(50, 10))


@pytest.mark.sweep
@pytest.mark.parametrize("policy", policy_names())
async def test_near_the_limit_a_message_is_sent_or_returns(tmp_path, policy):
    """R-524: the recall tool is offered after the first recovery, and takes room, too.

    Seen: "Not sent: 6,029 tokens, 6,000 fit", and the same message was sent when asked again. Whether a request fits
    is judged once, before the message is logged. `make fuzz` tries four times as many sizes.
    """
    for number, words in enumerate(range(1_900, 3_400, amount(600, 400, 100))):
        root = tmp_path / str(number)
        root.mkdir()
        adapter = ScriptedAdapter("s", smaller_than_believed)
        bench = Bench(root, adapter, window=32_000, settings={"policy": policy}, checks_usage=True)
        session = await bench.open()
        for turn in range(1, 7):
            session.submit(submit(f"question {turn} " + "please " * (900 if turn < 5 else words), turn))
            await bench.idle(session)
        assert {end.reason for end in bench.of(TurnFinished)} <= {"done", "limit"}, (words, bench.of(TurnFinished))
        back = [failed.submit_id for failed in bench.of(SubmitFailed)]
        logged = [m.text for m in full_history(await session.log.events()) if m.role == "user" and m.tag is None]
        assert len(logged) + len(back) == 6
        assert words > 2_500 or not back


async def test_a_message_too_large_with_its_attachments_returns_and_nothing_is_sent(tmp_path):
    """The file and the message each fit alone; together they do not, so neither is sent."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=8_000, tools={"enabled": False})
    session = await bench.open()
    first = submit("word " * 4_000, 1)
    session.submit(first)
    session.context.add(Message(id="f", role="user", tag="file", path="a.txt", content="word " * 4_000, pinned=True))
    await bench.idle(session)
    assert [back.text for back in bench.of(SubmitFailed)] == [first.text]
    assert bench.of(TurnFinished)[-1].reason == "limit"
    assert bench.of(TurnFinished)[-1].unsent
    assert adapter.requests == []


async def test_not_sent_is_not_drawn_again_above_the_answer(tmp_path):
    """The log has the end of the turn; the redraw shows the current state: the message was sent the second time."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=8_000, tools={"enabled": False})
    session = await bench.open()
    must_fit = session.control.fitting.must_fit

    async def refuses():
        session.control.fitting.must_fit = must_fit
        raise ContextOverflow("Not sent: 8,029 tokens, 7,200 fit.")

    session.control.fitting.must_fit = refuses
    session.submit(submit("question"))
    await bench.idle(session)
    assert bench.of(TurnFinished)[-1].unsent
    assert [entry.kind for entry in entries(await session.log.events())] == ["user", "note"]
    await session.regenerate(Snapshot())
    await bench.idle(session)
    assert [entry.kind for entry in entries(await session.log.events())] == ["user", "reply"]


async def test_the_token_count_is_that_after_compaction(tmp_path):
    """The meter still shows the whole chat, which is larger."""
    adapter = ScriptedAdapter("s", lambda request: says("word " * 1_500))
    bench = Bench(tmp_path, adapter, window=8_000, tools={"enabled": False})
    session = await bench.open()
    for number in (1, 2):
        session.submit(submit("short", number))
        await bench.idle(session)
    session.submit(submit("word " * 20_000, 3))
    await bench.idle(session)
    [back] = bench.of(SubmitFailed)
    assert " tokens after compaction, 7,600 fit; your message takes" in back.error
