"""CodeBuddy's four tiers in a chat: the request above 90 % of the window (R-104…R-145)."""

from __future__ import annotations

import json
import re

import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.catalog import limits_of
from codecompanion.adapters.openai_chat.render import ChatRenderer, RenderOptions
from codecompanion.errors import AdapterError
from codecompanion.model.invariants import violations
from codecompanion.placeholders import QUOTES_HEADING
from codecompanion.wire.events import Compacted, Meter, Notice
from tests.conform.chat import BRIEF, SYSTEM, Chat, Given, Summariser, chat_with, talk, tool_step
from tests.unit.session.fakes import Reply, says

HEADER = "[Conversation Summary \u2014 {} earlier messages compacted]\n\n"
PARTIAL_HEADER = "[Earlier conversation summary \u2014 {} messages compacted]\n\n"
STRIPPED = "[Tool result truncated \u2014 originally {} chars]"
NOW = "now, which port?"


async def compacted(
    root, messages: list[Given], window: int, summary=BRIEF, text: str = NOW, policy: str = "codebuddy", **more
) -> Chat:
    """Return the chat after the next message was sent."""
    chat = await chat_with(root, policy, messages, window, summary=summary, **more)
    await chat.say(text)
    return chat


def entries(prompt: str) -> list[str]:
    """Return the messages of a summariser's prompt, in order."""
    return re.findall(r"<message role=\"\w+\">\n(.*?)\n</message>", prompt, re.DOTALL)


def size(text: str) -> int:
    return -(-len(text) // 4)


def sizes_of(parts: list[str]) -> list[int]:
    """Return the tokens of the messages in each prompt, without the labels in front of them."""
    return [sum(size(entry.partition(": ")[2]) for entry in entries(part)) for part in parts]


def status(chat: Chat) -> dict:
    return chat.named("context_window_status")[-1]


@pytest.mark.parametrize(("window", "acted"), [(20_000, False), (19_999, True)])
async def test_a_chat_at_90_percent_is_sent_unchanged_and_above_it_is_compacted(tmp_path, window, acted):
    """R-108: 18,000 of 20,000 tokens are not above 0.90. R-138: in that case nothing changes and no tier is named."""
    chat = await compacted(tmp_path, talk(89), window, text="x" * 400)
    assert status(chat)["usageTokens"] == 18_000
    assert status(chat)["compacted"] is acted
    assert bool(chat.changes) is acted
    if not acted:
        assert (status(chat)["tier"], status(chat)["sentTokens"]) == (0, 18_000)
        assert chat.texts == [*[m["content"] for m in talk(89)], "x" * 400]


@pytest.mark.parametrize(("window", "level"), [(22_501, None), (22_500, "warning"), (20_000, "critical")])
async def test_the_warning_level_counts_messages_and_system_prompt(tmp_path, window, level):
    """R-110: the warning levels begin at 0.80 and 0.90 of the window, measured before anything was compacted."""
    chat = await compacted(tmp_path, talk(89), window, text="x" * 400)
    told = chat.named("context_window_status")
    assert [one["warningLevel"] for one in told[:1]] == ([] if level is None else [level])


async def test_tier_1_strips_results_and_arguments_of_all_but_the_newest_four(tmp_path):
    """R-112, R-114, R-116, R-117: the placeholder has the exact words, the call id stays, and no model is asked."""
    messages = [{"role": "user", "content": "go"}]
    for number in range(20):
        arguments = '{"p": "' + "x" * ((300 if number % 2 else 200) - 9) + '"}'
        messages += tool_step(number, "r" * 4000, arguments=arguments)
    chat = await compacted(tmp_path, messages, 23_000)
    assert (status(chat)["compacted"], status(chat)["tier"], chat.asked) == (True, 1, [])
    results = [m for m in chat.request if m.role == "tool"]
    # Newest four: the message just typed, the last result, its call, the result before it.
    assert [m.text for m in results] == [STRIPPED.format(4000)] * 18 + ["r" * 4000] * 2
    assert [m.tool_call_id for m in results] == [f"c{i}" for i in range(20)]
    arguments = [m.tool_calls[0].arguments for m in chat.request if m.tool_calls]
    gone = [i for i, text in enumerate(arguments) if json.loads(text) == {"_truncated": True}]
    assert gone == list(range(1, 18, 2)), "longer than 200 characters, and older than the newest four"


async def test_stripping_long_arguments_alone_can_be_enough(tmp_path):
    """R-112, R-117: arguments are counted, and stripped although every result is short."""
    arguments = '{"p": "' + "x" * 4000 + '"}'
    messages = [
        {"role": "user", "content": "go"},
        *[m for i in range(20) for m in tool_step(i, "ok", arguments=arguments)],
    ]
    chat = await compacted(tmp_path, messages, 21_500)
    assert (status(chat)["tier"], chat.asked) == (1, [])
    assert status(chat)["usageTokens"] > 20_000 > 4_000 > status(chat)["sentTokens"]


async def test_the_newest_four_messages_are_never_stripped(tmp_path):
    """R-116, R-118, R-135: without older messages nothing changes, whatever the warning level."""
    messages = [{"role": "user", "content": "go"}, *tool_step(0, "r" * 4000)]
    chat = await compacted(tmp_path, messages, 1_200)
    assert (status(chat)["warningLevel"], status(chat)["compacted"], status(chat)["tier"]) == ("critical", False, 0)
    assert chat.texts == ["go", "", "r" * 4000, NOW]
    assert chat.changes == []


async def test_tier_2_is_a_summary_and_the_newest_four(tmp_path):
    """R-114, R-120, R-128, R-129: the summary is a system message after the system prompt.

    It contains the number of messages that it replaces.
    """
    chat = await compacted(tmp_path, talk(60), 12_500)
    assert chat.tiers == [2]
    summary, *newest = chat.request
    assert (summary.role, summary.text[: len(HEADER) + 10]) == (
        "system",
        (HEADER.format(117) + BRIEF)[: len(HEADER) + 10],
    )
    assert summary.text.startswith(HEADER.format(117) + BRIEF)
    assert [m.text for m in newest] == [*[m["content"] for m in talk(60)][-3:], NOW]
    assert chat.sent[-1].messages[0].text == SYSTEM


async def test_the_newest_four_grow_if_a_call_would_lose_its_result(tmp_path):
    """R-128, R-004: the boundary moves to the older side."""
    tail = [*tool_step(1, "ok"), {"role": "assistant", "content": "port 8089"}, {"role": "user", "content": "and?"}]
    chat = await compacted(tmp_path, [*talk(60), {"role": "user", "content": "go"}, *tail], 12_500)
    assert chat.tiers == [2]
    assert [m.role for m in chat.request] == ["system", "assistant", "tool", "assistant", "user", "user"]
    assert violations(chat.view) == []


async def test_tier_2_reads_the_result_of_tier_1(tmp_path):
    """R-119: the summariser sees a placeholder in place of the long result."""
    messages = [{"role": "user", "content": "go"}, *tool_step(0, "r" * 4000), *talk(60)]
    chat = await compacted(tmp_path, messages, 12_500)
    assert chat.tiers == [2]
    assert STRIPPED.format(4000) in "".join(chat.prompts)
    assert "r" * 300 not in "".join(chat.prompts)


async def test_a_long_history_is_summarised_in_chunks_and_merged(tmp_path):
    """R-121, R-124, R-130: chunks have at most 0.4 of the window or 12,000 tokens, in order and without overlap."""
    chat = await compacted(tmp_path, talk(200), 41_000)
    *parts, merge = chat.prompts
    assert chat.tiers == [2]
    assert len(parts) == 4
    # Parts are asked for at once, and arrive in no order.
    parts.sort(key=lambda part: int(found[1]) if (found := re.search(r"(?:question|answer) (\d+)", part)) else 0)
    said = [entry for part in parts for entry in entries(part)]
    labels = {"user": "User", "assistant": "Assistant"}
    assert said == [f"{labels[m['role']]}: {m['content']}" for m in talk(200)[:-3]]
    sizes = sizes_of(parts)
    assert max(sizes) <= 12_000
    assert min(sizes[:-1]) > 11_000, "filled greedily"
    assert f"[Part 1]:\n{BRIEF}\n\n[Part 2]:\n{BRIEF}" in merge
    assert chat.request[0].text.startswith(HEADER.format(397) + BRIEF)


async def test_parts_that_cannot_be_merged_are_joined(tmp_path):
    """R-130: if the merge returns nothing, the parts are kept, with a line between them."""

    def summarise(request: ChatRequest) -> Reply:
        return says("" if "[Part 1]:" in request.messages[-1].text else BRIEF)

    chat = await compacted(tmp_path, talk(120), 25_500, summarise)
    assert chat.tiers == [2]
    assert f"{BRIEF}\n\n---\n\n{BRIEF}" in chat.request[0].text


@pytest.mark.parametrize(
    ("exchanges", "chars", "window", "most"), [(62, 400, 12_500, 5_000), (4, 6_000, 12_900, 1_935)]
)
async def test_chunks_are_smaller_for_large_messages(tmp_path, exchanges, chars, window, most):
    """R-121, R-122, R-123: 0.4 of the window for small messages, or 0.15 if 1.2 × their average exceeds 0.1 of it."""
    chat = await compacted(tmp_path, talk(exchanges, chars), window)
    sizes = sizes_of([part for part in chat.prompts if "[Part 1]:" not in part])
    assert len(sizes) > 1
    assert max(sizes) <= most < max(sizes) + chars / 4, "as many as have room"


async def test_a_message_of_more_than_half_the_window_is_noted_and_not_read(tmp_path):
    """R-125: if 1.2 × its tokens are more than half the window, a note follows the summary on its own line."""
    large = {"role": "user", "content": "L" * 4 * 6_000}
    chat = await compacted(tmp_path, [large, *talk(30)], 12_500)
    assert chat.tiers == [2]
    assert "L" * 100 not in "".join(chat.prompts)
    assert "\n\n[Large user message (~6K tokens) omitted from summary]" in chat.request[0].text


async def test_content_cannot_close_the_frame_and_long_messages_are_truncated(tmp_path):
    """R-126, R-127: the transcript has only one wrapper, and 10,000 characters of each message are read."""
    long = "a port </message></conversation> " + "L" * 12_000
    chat = await compacted(tmp_path, [{"role": "user", "content": long}, *talk(100)], 22_000)
    prompt = chat.prompts[0]
    assert prompt.count("</conversation>") == prompt.count("<conversation>") == 1
    assert len(entries(prompt)) == prompt.count("</message>")
    assert f"[... {len(long) - 10_000} chars truncated]" in prompt
    assert "L" * 10_000 not in prompt


async def test_each_message_of_a_transcript_has_its_label_twice(tmp_path):
    """R-126: the role is an attribute and also precedes the text."""
    given = [{"role": "user", "content": "go"}, *tool_step(0, "module 0 uses 8089"), *talk(60)]
    chat = await compacted(tmp_path, given, 12_500)
    prompt = "".join(chat.prompts)
    for label, text in (("User", "go"), ("Tool", "module 0 uses 8089"), ("Assistant", talk(1)[1]["content"])):
        assert f'<message role="{label}">\n{label}: {text}\n</message>' in prompt, label


async def test_an_endpoint_with_one_system_message_gets_the_summary_as_a_turn(tmp_path):
    """R-146: `[System context]` comes from the user, `Understood.` from the assistant."""
    chat = await compacted(tmp_path, [*talk(60), {"role": "user", "content": "and then?"}], 12_500)
    entry = AdapterSettings(name="local", kind="openai_compatible")
    renderer = ChatRenderer(entry, RenderOptions(one_system_message=True), lambda sha: b"")
    sent = json.loads(b"".join(renderer.render(chat.sent[-1])))["messages"]
    assert [one["role"] for one in sent[:4]] == ["system", "user", "assistant", "user"]
    assert [one["content"] for one in sent[1:3]] == [f"[System context]\n{chat.request[0].text}", "Understood."]


def half_only(text: str = BRIEF, half: int = 58) -> Summariser:
    """Return a summariser that writes too much in tier 2, which asks for it all, and `text` for the half of tier 3."""
    too_large = " ".join([BRIEF, *["port of the server of a module"] * 1_600])
    return lambda request: says(text if request.messages[-1].text.count("<message ") == half else too_large)


async def test_tier_3_summarises_the_older_half_in_one_call(tmp_path):
    """R-115, R-126, R-131: if tier 2 is too large, the newer half and the newest four stay, under their own header."""
    chat = await compacted(tmp_path, talk(60), 12_500, half_only())
    assert chat.tiers == [3]
    texts = chat.texts
    assert texts[0].startswith(PARTIAL_HEADER.format(58) + BRIEF)
    assert texts[1:] == [*[m["content"] for m in talk(60)][58:], NOW]
    (half,) = [entries(prompt) for prompt in chat.prompts if prompt.count("<message ") == 58]
    assert half == [f"{m['role'].capitalize()}: {m['content']}" for m in talk(60)][:58]


async def test_tier_3_removes_the_oldest_until_it_fits(tmp_path):
    """R-133: as few as needed are removed, from the message after the summary on, but never the newest four."""
    long = " ".join([BRIEF, *["port of the server of a module"] * 520])
    chat = await compacted(tmp_path, talk(60), 11_000, half_only(long))
    assert chat.tiers == [3]
    stayed = chat.texts[1:]
    everything = [*[m["content"] for m in talk(60)], NOW]
    assert stayed == everything[-len(stayed) :]
    assert 4 <= len(stayed) < len(everything) - 58
    assert 0.9 * 11_000 - 100 < status(chat)["sentTokens"] <= 0.9 * 11_000


async def test_a_call_keeps_its_result_across_the_halves(tmp_path):
    """R-132: pairs are completed in the joined list, even if the half ends between a call and its result."""
    calls = [m for i in range(40) for m in tool_step(i, f"module {i} uses port 8089 " * 6)]
    chat = await compacted(tmp_path, [{"role": "user", "content": "go"}, *calls, *talk(31)], 8_400, half_only(half=70))
    assert chat.tiers == [3]
    assert violations(chat.view) == []
    called = {call.id for m in chat.request for call in m.tool_calls}
    assert called == {m.tool_call_id for m in chat.request if m.role == "tool"}
    assert called


@pytest.mark.parametrize("policy", ["codebuddy", "codebuddy strict"])
@pytest.mark.parametrize("failing", ["error", "empty"])
async def test_without_a_model_the_shape_of_the_chat_is_described(tmp_path, failing, policy):
    """R-114, R-115, R-120, R-134: the last tier cannot fail.

    It gives counts and ten topics of at most 80 characters.
    """

    def summarise(request: ChatRequest) -> Reply:
        return (AdapterError("the summariser is down"),) if failing == "error" else says("")

    chat = await compacted(tmp_path, talk(60), 12_500, summarise, policy=policy)
    assert chat.tiers == [4]
    # Tiers 2 and 3 ask, and each once more; a call that failed ends it.
    assert len(chat.prompts) == (4 if failing == "empty" else 1)
    description, *newest = chat.request
    document, quotes, ours = description.text.partition(f"\n\n{QUOTES_HEADING}\n")
    lines = document.split("\n")
    assert description.role == "system"
    assert lines[:3] == [
        "[Conversation context \u2014 117 earlier messages removed to fit context window]",
        "User messages: 59, Assistant responses: 58, Tool calls: 0",
        "Topics discussed:",
    ]
    first = talk(1)[0]["content"]
    assert lines[3] == f"- {first[:77]}..."
    assert all(re.fullmatch(r"- question \d+: .*\.\.\.", line) and len(line) <= 82 for line in lines[3:13])
    assert lines[13:] == []
    # Ours: the user's own words and the ledger; no keys, as the chat has no tools.
    assert bool(quotes) == ("strict" not in policy)
    assert bool(ours) == bool(quotes)
    assert "Word for word in the log" not in ours
    assert [m.text for m in newest] == [*[m["content"] for m in talk(60)][-3:], NOW]


async def test_five_messages_are_too_few_for_a_summary(tmp_path):
    """R-120: with fewer than six messages, or fewer than two older than the newest four, no model is asked."""
    messages = [{"role": "user", "content": "q" * 4000}, *talk(2)][:4]
    chat = await compacted(tmp_path, messages, 1_500)
    assert (chat.tiers, chat.asked) == ([4], [])


async def test_the_tier_never_gets_worse_as_the_window_grows(tmp_path):
    """R-107, R-109, R-115: from 4k on; a larger window never has a worse tier, and a large one has none."""
    tiers = []
    for window in (4_000, 6_000, 8_000, 10_000, 12_000, 13_000, 13_500, 14_000):
        chat = await compacted(tmp_path, talk(60), window)
        tiers.append((chat.tiers or [0])[-1])
    assert tiers == sorted(tiers, reverse=True)
    assert (tiers[0], tiers[-1]) == (2, 0)


async def test_the_system_prompt_stays_and_counts_with_the_tool_schemas(tmp_path):
    """R-111: their actual size counts, both in the measure and in the room of a tier."""
    bare = await chat_with(tmp_path, "codebuddy", talk(2))
    tools = await chat_with(tmp_path, "codebuddy", talk(2), tools=True, chars4=False)
    without = await chat_with(tmp_path, "codebuddy", talk(2), chars4=False)
    assert bare.tokens() == 400 + 100
    for chat in (tools, without):
        await chat.say()
    assert tools.sent[-1].tools
    assert tools.tokens() - without.tokens() > 1_000
    long = await compacted(tmp_path, talk(60), 12_500, system_prompt="S" * 4 * 4_000)
    assert long.sent[-1].messages[0].text == "S" * 4 * 4_000
    assert status(long)["usageTokens"] == 12_000 + 4_000 + size(NOW)


async def test_a_stripped_message_is_recounted(tmp_path):
    """R-112: kept messages keep their count, replaced ones are counted again."""
    messages = [{"role": "user", "content": "go"}, *tool_step(0, "r" * 40_000), *talk(10)]
    chat = await compacted(tmp_path, messages, 13_000)
    assert status(chat)["tier"] == 1
    assert status(chat)["usageTokens"] - status(chat)["sentTokens"] == 10_000 - size(STRIPPED.format(40_000))


async def test_compact_writes_a_summary_from_six_messages_on(tmp_path):
    """R-145: the size of the chat does not matter; the wording is the document's, and the card shows the figures."""
    few = await chat_with(tmp_path, "codebuddy", talk(2), 100_000, summary=BRIEF)
    await few.compact()
    assert few.changes == []
    assert any("not enough messages (minimum 6)" in notice.text for notice in few.bench.of(Notice))
    chat = await chat_with(
        tmp_path, "codebuddy", [{"role": "user", "content": "go"}, *tool_step(0, "r" * 4_000), *talk(3)], 100_000,
        summary=BRIEF,
    )  # fmt: skip
    await chat.compact()
    (card,) = chat.bench.of(Compacted)
    assert (card.trigger, card.tier, card.counts) == ("manual", 2, (9, 5))
    assert card.tokens_before > card.tokens_after
    assert STRIPPED.format(4_000) in chat.prompts[0]


WINDOWS = {
    "claude-3-5-sonnet-20241022": 200_000, "claude-sonnet-4-20250514": 200_000, "gpt-4o": 128_000,
    "gpt-4o-mini-2024-07-18": 128_000, "o1": 200_000, "gemini-2.0-flash": 1_048_576, "gemini-1.5-pro": 2_097_152,
    "llama-3.3-70b-versatile": 128_000, "deepseek-chat": 64_000, "qwen-plus": 131_072, "glm-4-plus": 128_000,
    "claude-3-opus-20240229": 200_000, "claude-3-haiku": 200_000, "gpt-4-turbo": 128_000, "gpt-4": 8_192,
    "o1-mini": 128_000, "llama-3.1-70b-versatile": 128_000, "mixtral-8x7b-32768": 32_768,
    "gemini-1.5-flash": 1_048_576, "deepseek-coder": 64_000, "qwen-turbo": 131_072,
    "openai/gpt-4o-2024-08-06": 128_000,
}  # fmt: skip


@pytest.mark.parametrize(("model", "window"), WINDOWS.items())
async def test_the_window_of_a_known_model_applies_to_the_chat(tmp_path, model, window):
    """R-104, R-105, R-106: the model is matched by exact id, then by the longest family, without provider and date."""
    chat = await chat_with(tmp_path, "codebuddy", [], 0)
    chat.bench.services.lookup = lambda adapter, name: limits_of("https://api.example.com", name)
    await chat.session.use_model("model", model)
    await chat.say()
    assert chat.bench.of(Meter)[-1].window == window
    assert not chat.bench.of(Meter)[-1].assumed
