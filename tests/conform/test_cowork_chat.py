"""CoWork's handoff in a chat: its trigger, truncation, kept and removed messages (R-401…R-426, R-450)."""

from __future__ import annotations

import json

import pytest

from codecompanion.adapters.catalog import limits_of
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Usage
from codecompanion.wire.events import Compacted, Meter
from tests.conform.chat import SYSTEM, exchange, reading_files, tool_step
from tests.conform.cowork import (
    OPEN,
    body,
    chars4,
    conversation,
    cowork,
    handed_on,
    handoffs,
    measures,
    nine,
    say,
    starts,
    talk,
)
from tests.unit.session.fakes import says

CUT = "\n\n[... content truncated due to length ...]"
OFF = {"compaction": {"trigger": False}}


def triggers(chat) -> list[str]:
    return [event.trigger for event in chat.bench.of(Compacted)]


@pytest.mark.parametrize(("window", "trigger"), [(200_000, 180_000), (128_000, 115_200), (16_000, 14_400)])
async def test_the_handoff_comes_at_90_percent_of_the_whole_window(tmp_path, window, trigger):
    """R-401, R-402, R-407: the trigger follows the document's table.

    Messages, system prompt and tools count, compared by >=.
    """
    for tokens, acted in ((trigger - 1, []), (trigger, ["proactive"])):
        chat = await cowork(tmp_path, talk(100, (trigger - 6_000) // 100), window)
        await measures(chat, tokens)
        assert triggers(chat) == acted
        assert chat.sent[-1].tools
        assert chat.sent[-1].messages[0].text == SYSTEM


@pytest.mark.parametrize("window", [200_000, 128_000, 16_000])
async def test_it_removes_down_to_half_before_the_summary_is_inserted(tmp_path, window):
    """R-404, R-416, R-423: as many of the newest messages as fit are kept; the summary is added.

    The run reports its figures.
    """
    chat = await cowork(tmp_path, talk(120, window // 128), window)
    await chat.say()
    (event,) = chat.named("context_summarized")
    without = event["tokensAfter"] - chars4(handoffs(chat)[0].text)
    assert without <= window // 2 < without + window // 128 + 2
    metadata, removed = event["metadata"], event["metadata"]["removedMessages"]
    assert metadata["availableTokens"] == window - 8_000 - 100
    assert (metadata["originalTokens"], metadata["kind"]) == (event["tokensBefore"], "message_removal")
    assert removed["didRemove"]
    assert removed["count"] == len(removed["messages"]) == event["removedCount"]
    assert metadata["truncatedToolResults"]["didTruncate"] is False


@pytest.mark.parametrize(("window", "limit"), [(200_000, 192_000), (16_000, 15_200)])
async def test_the_reactive_compaction_is_the_fallback_for_the_proactive_one(tmp_path, window, limit):
    """R-403, R-450, R-452: if one message jumps above window − min(8000, 5 %), the chat is compacted down to half."""
    for tokens, acted in ((limit, []), (limit + 1, ["reactive"])):
        chat = await cowork(tmp_path, talk(120, window // 150), window, management=OFF)
        assert chat.tokens() < 0.9 * window
        await measures(chat, tokens)
        assert triggers(chat) == acted
    (event,) = chat.named("context_summarized")
    assert "proactive" not in event
    without = event["tokensAfter"] - chars4(handoffs(chat)[0].text)
    assert without <= window // 2 < without + window // 150 + 2
    assert body(chat).startswith("1. **Primary Request and Intent**\ntold 1")
    assert chat.asked[0].max_output_tokens == {200_000: 4096, 16_000: 632}[window]


async def test_the_tool_schemas_count(tmp_path):
    """R-402: without them the request would be below the trigger."""
    messages = [m for i in range(20) for m in exchange(i)]
    empty = (await cowork(tmp_path, [], 1_000_000, chars4=False)).tokens()
    whole = (await cowork(tmp_path, messages, 1_000_000, chars4=False)).tokens()
    assert empty > 2 * len(SYSTEM)
    chat = await handed_on(tmp_path, messages, int(whole / 0.9), chars4=False)
    assert triggers(chat) == ["proactive"]
    assert whole < chat.named("context_summarized")[0]["tokensBefore"] < whole + 20


AVAILABLE = {"at": 0.90, "measure": "messages", "basis": "available", "op": ">="}


@pytest.mark.parametrize(("window", "trigger"), [(200_000, 172_800), (128_000, 108_000), (16_000, 7_200)])
async def test_the_sources_measure_is_an_option(tmp_path, window, trigger):
    """R-402: the option compares messages with window − 8000 − system prompt."""
    management = {
        "compaction": {"trigger": AVAILABLE, "target": {"at": 0.5, "measure": "messages", "basis": "available"}}
    }
    for tokens, acted in ((trigger - 1, []), (trigger, ["proactive"])):
        chat = await cowork(tmp_path, talk(100, trigger // 102), window, management=management, system_prompt="")
        await measures(chat, tokens)
        assert triggers(chat) == acted


async def test_the_size_of_a_chat_is_the_providers_report_plus_an_estimate(tmp_path):
    """R-405: the size is not characters / 4 plus 10 a message; R-505 is the counter under this policy too."""
    usage = Usage(input_tokens=50_000, output_tokens=7)
    chat = await cowork(tmp_path, [], 100_000, replies=lambda request: says("done", usage))
    await chat.say()
    assert chat.bench.of(Meter)[-1].tokens == chat.tokens() == 50_007


WINDOWS = {
    "claude-3-5-sonnet-20241022": 200_000, "gpt-4o": 128_000, "gpt-4o-mini": 128_000, "gpt-4-turbo": 128_000,
    "gpt-3.5-turbo": 16_385, "something-32k": 32_000, "something-of-nobody": 100_000,
}  # fmt: skip


@pytest.mark.parametrize(("model", "window"), WINDOWS.items())
async def test_the_window_of_a_model_is_the_chats(tmp_path, model, window):
    """R-406: the window comes from the table (the source rounds 16,385), `<n>k` or else the policy's guess, 100,000."""
    chat = await cowork(tmp_path, [], 0)
    chat.bench.services.lookup = lambda adapter, name: limits_of("https://api.example.com", name)
    await chat.session.use_model("model", model)
    await chat.say()
    meter = chat.bench.of(Meter)[-1]
    assert (meter.window, meter.assumed) == (window, window == 100_000)
    assert meter.compact_at == window * 9 // 10


NEWER = {
    "extends": "cowork",
    "compaction": {
        "trigger": 0.85, "target": 0.55, "summary": {"max_tokens": 6144}, "transcript": {"max_chars": 90_000},
    },
}  # fmt: skip


async def test_the_newer_constants_can_be_a_users_own_policy(tmp_path):
    """R-407: 0.55, 6144 and 90,000 can be configured.

    The other tests use the document's (0.90, 0.50, 4096, 500, 60000).
    """
    chat = await handed_on(tmp_path, talk(101, 1_700), 200_000, policy="mine", policies={"mine": NEWER})
    assert chat.asked[0].max_output_tokens == 6144
    assert 60_000 < len(conversation(chat)) <= 90_000
    (event,) = chat.named("context_summarized")
    without = event["tokensAfter"] - chars4(handoffs(chat)[0].text)
    assert without <= 110_000 < without + 1_702


SMALLER = {
    "extends": "cowork",
    "stage": [
        {
            "id": "reactive", "like": "proactive", "label": "reactive", "unless": ["proactive"],
            "trigger": {"at": 0.25, "basis": "window_less_reserve", "op": ">"}, "target": 0.2,
        }
    ],
}  # fmt: skip


@pytest.mark.parametrize("removes", [True, False])
async def test_truncated_results_alone_do_not_suppress_the_reactive_compaction(tmp_path, removes):
    """R-408, R-410: it is skipped only if the proactive compaction removed messages, even if more needs to be done."""
    filler = [say("assistant", 6_000), say("user", 6_000)] * (5 if removes else 1)
    messages = [say("user", 10), *filler, *tool_step(1, "r" * 240_000), say("assistant", 10, "m")]
    chat = await handed_on(tmp_path, messages, 80_000, policy="mine", policies={"mine": SMALLER})
    assert bool(chat.named("context_tools_truncated")) is not removes
    assert chat.named("context_summarized")[0]["metadata"]["truncatedToolResults"]["didTruncate"] is removes
    assert triggers(chat) == (["proactive"] if removes else ["reactive"])


async def test_truncating_results_is_not_a_compaction(tmp_path):
    """R-408, R-411, R-414: truncation writes no summary, removes nothing, has its own event, and the turn continues."""
    messages = [say("user", 100), *tool_step(1, "x" * 200_000), say("assistant", 100)]
    chat = await handed_on(tmp_path, messages, 55_000)
    assert (chat.asked, chat.tiers, handoffs(chat)) == ([], [], [])
    (told,) = chat.named("context_tools_truncated")
    assert (told["count"], told["before"] - told["after"]) == (1, 50_000 - 10_000 + 14)
    assert chat.named("context_summarized") == []
    assert chat.named("conversation_snapshot") == []
    assert [len(text) for text in chat.texts][2] == 39_900 + len(CUT)


def result_of(chat) -> str:
    (message,) = [m for m in chat.request if m.role == "tool"]
    return message.text


LIST = json.dumps([{"n": i, "text": "t" * 300} for i in range(1_230)])
PAGE = {"path": "a.html", "content": "c" * 400_000}
DOCUMENT = {"path": "a.pdf", "content": "d" * 400_000}


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("result", ["p" * 400_000, LIST, json.dumps(PAGE), json.dumps(DOCUMENT)])
async def test_a_large_result_is_truncated_according_to_its_kind(tmp_path, result, newest):
    """R-412, R-413, R-415: plain text, lists, objects with `content` and documents are truncated, even if newest."""
    after = [] if newest else [say("assistant", 100)]
    chat = await handed_on(tmp_path, [say("user", 100), *tool_step(1, result), *after], 110_000)
    cut = result_of(chat)
    if result == LIST:
        shown, _, note = cut.partition("\n\n")
        assert json.loads(shown) == json.loads(LIST)[:50]
        assert note == "[... showing 50 of 1230 items ...]"
    elif result.startswith("p"):
        assert cut == "p" * 39_900 + CUT
    else:
        tokens = 28_500 if "a.pdf" in result else 5_000
        given = json.loads(result)
        assert json.loads(cut) == {**given, "content": given["content"][: tokens * 4 - 100] + CUT}


async def test_first_pinned_and_newest_stay_and_the_summary_follows_the_first(tmp_path):
    """R-416, R-420, R-443: messages are pinned by flag or tag; the order is kept.

    The newest fill half of the window.
    """
    messages = talk(20, 500)
    messages[5]["meta"] = {"pinned": True}
    for index, tag in ((7, "memory_recall"), (8, "shared_context"), (9, "user_profile")):
        messages[index]["meta"] = {"tag": tag}
    chat = await handed_on(tmp_path, messages, 11_000)
    kept = starts(chat)
    newest = [f"m{i}" for i in range(27 - len(kept), 20)]
    assert kept == ["m0", OPEN.strip(), "m5", "m7", "m8", "m9", *newest, "now"]
    assert len(newest) in range(2, 8)
    assert handoffs(chat)[0].pinned


def names(path: str, number: int) -> dict:
    return say("assistant", 100, f"m{number} looked at {path} ")


async def test_older_messages_about_the_files_in_use_stay(tmp_path):
    """R-416, R-418, R-419: files named in the newest four count, even by relative path.

    Whole pairs stay, oldest first, up to 15 % of the target.
    """
    (tmp_path / "src").mkdir()
    (tmp_path / "src/used.py").write_text("x = 1\n")
    messages = talk(30, 400)
    messages[3] = names("/srv/app/main.py", 3)
    messages[5] = names("src/used.py", 5)
    messages[7] = names("/single", 7)
    messages[9] = names("src/gone.py", 9)
    messages[11:13] = tool_step(1, "m12 " + "r" * 400, arguments='{"path": "src/used.py"}')
    messages[13] = say("assistant", 2_000, "m13 src/used.py ")
    messages[27] = say("assistant", 400, "m27 /single and src/gone.py, then /srv/app/main.py. And src/used.py: ")
    chat = await cowork(tmp_path, messages, 14_000)
    await measures(chat, 12_600)
    kept = starts(chat)[:-1]
    assert kept[:6] == ["m0", OPEN.strip(), "m3", "m5", "", "m12"]
    assert kept[6:] == [*[f"m{i}" for i in range(36 - len(kept), 30)]]
    assert violations(chat.view) == []


async def test_a_call_and_its_result_stay_or_go_together(tmp_path):
    """R-417: pairs are kept whole wherever the target cuts; a chat of two messages is unchanged."""
    steps = [m for i in range(40) for m in (*tool_step(i, "r" * 900), say("assistant", 30, "m"))]
    parted = set()
    for window in range(14_000, 14_800, 100):
        chat = await cowork(tmp_path, [say("user", 50), *steps], window)
        await measures(chat, window * 9 // 10 + 1)
        assert triggers(chat) == ["proactive"]
        called = [call.id for m in chat.request for call in m.tool_calls]
        assert called == [m.tool_call_id for m in chat.request if m.role == "tool"]
        parted.add(len(chat.request) % 3)
    assert len(parted) > 1, "the cut moves through a step"
    two = await handed_on(tmp_path, [say("user", 9_000)], 11_500)
    assert (two.tiers, [len(text) for text in two.texts]) == ([], [36_000, 3])


async def test_pinned_messages_over_the_target_are_reported_and_the_run_ends(tmp_path):
    """R-422: they stay, together with the user's last message; the rest is removed once, and the chat continues."""
    pinned = [say("user", 900, f"p{i} ", pinned=True) for i in range(7)]
    chat = await handed_on(tmp_path, [say("user", 100, "first "), *pinned, *talk(12, 300)], 10_800)
    assert starts(chat) == ["first", OPEN.strip(), *[f"p{i}" for i in range(7)], "now"]
    (told,) = chat.named("pinned_over_target")
    assert told["pinned_tokens"] > told["target_tokens"] == 5_400
    await chat.say("and now", 2)
    assert triggers(chat) == ["proactive"]


async def test_pinned_messages_survive_later_handoffs_and_one_summary_is_updated(tmp_path):
    """R-421, R-423, R-424, R-426: all pinned messages stay.

    The summary stays in place and combines the old one with the new.
    """
    chat = await cowork(tmp_path, [say("user", 50, "first "), say("user", 50, "pin ", pinned=True)], 12_000)
    told = iter(range(1, 100))
    chat.bench.adapter._replies = lambda request: says(
        nine(f"round {next(told)}") if request.purpose == "summary" else "a" * 4_000
    )
    for number in range(30):
        await chat.say("q" * 400, number)
    assert len(chat.tiers) >= 3
    first, *_ = chat.named("context_summarized")
    removed = first["metadata"]["removedMessages"]
    assert 0 < removed["tokensAfter"] < first["tokensAfter"] < first["tokensBefore"]
    assert starts(chat)[:3] == ["first", OPEN.strip(), "pin"]
    assert len(handoffs(chat)) == 1
    assert f"round {len(chat.tiers)} 1" in body(chat)
    assert "[previous summary]\n1. **Primary Request and Intent**\nround 1 1" in chat.prompts[1]


def failed(number: int, text: str) -> list[dict]:
    call, result = tool_step(number, text)
    return [call, {**result, "meta": {"is_error": True}}]


async def test_old_noise_errors_are_pruned(tmp_path):
    """R-425: duplicate and blocked errors are pruned, except in the newest four.

    Adjacent messages of one role stay separate.
    """
    noise = "blocked: the call is a DUPLICATE of an earlier one " * 3
    real = "no such file: /srv/app/main.py " * 3
    newest = [*failed(1, noise), *failed(2, real), *talk(2, 50), *failed(3, noise)]
    chat = await handed_on(tmp_path, [*talk(20, 500), *newest, say("user", 100, "u0")], 11_500)
    assert [m.text for m in chat.request if m.role == "tool"] == ['{"error":"pruned"}', real, noise]
    assert [m.role for m in chat.request[-2:]] == ["user", "user"]


async def test_a_running_task_is_handed_off_with_its_newest_rounds(tmp_path):
    """R-408, R-411, R-416: no tier clears results instead of the handoff; the newest round is kept verbatim."""
    chat = await cowork(tmp_path, [], 12_000, replies=reading_files(tmp_path, 20))
    await chat.say("read all files")
    assert triggers(chat) == ["proactive"]
    assert (chat.edits, chat.named("context_tools_truncated")) == ([], [])
    for request in chat.sent:
        results = [m.text for m in request.messages if m.role == "tool"]
        assert all("line of file" in text for text in results), "nothing is cleared"
        called = [call.id for m in request.messages for call in m.tool_calls]
        assert called == [m.tool_call_id for m in request.messages if m.role == "tool"]
    assert "read all files" in "".join(chat.texts)
    assert any("line of file 19" in text for text in chat.texts)
