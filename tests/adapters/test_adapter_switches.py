"""Tests of a chat that changes its provider, for every pair: R-542, R-534…R-541, lessons 4, 24…28.

The invariants of every request are in `switch_chat.py`. Recorded transcripts are played in `tests/external/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from codecompanion.wire.events import Notice
from tests.adapters.switch_chat import SwitchingChat, When, open_chat, round_trip
from tests.adapters.switch_provider import leaks, open_providers
from tests.adapters.switch_story import DEMANDING, Step, Story, StoryCall, Turn, again, long_text
from tests.providers.anthropic.models import HAIKU, OPUS, SONNET
from tests.providers.loopback.server import Received

pytestmark = pytest.mark.slow("every pair of providers through whole chats")

MIXED = ("azure", "vllm", "nim", "gemini", "openrouter", "kimi", "responses", "opus", "gemini@localhost")
PAIRED = ("openai", "mistral", "responses", "anthropic", "responses@localhost", "anthropic@localhost")
NATIVE = ("responses", "anthropic", "opus")
READ = StoryCall("read", '{"path": "log"}', long_text(15_000))


async def play(root: Path, route: Sequence[str], story: Story, when: When = "turns", **fields: Any) -> SwitchingChat:
    """Return the chat after the story was played without a problem."""
    async with open_chat(root, route, story, when, **fields) as chat:
        await chat.play(story)
        assert chat.problems() == []
    return chat


@pytest.mark.parametrize(("first", "other"), list(permutations(PAIRED, 2)))
async def test_every_turn_may_go_to_the_other_of_two_providers(tmp_path: Path, first: str, other: str) -> None:
    """The chat includes rules, images, a PDF, reasoning, and parallel and broken calls.

    It also includes truncated, interrupted and failed replies.
    """
    chat = await play(tmp_path, (first, other), DEMANDING)
    assert chat.switches == len(DEMANDING) - 1


def test_the_walk_covers_every_ordered_pair() -> None:
    """The walk visits each ordered pair of providers once; this checks the test itself."""
    walk = round_trip(MIXED)
    assert sorted(zip(walk, [*walk[1:], walk[0]], strict=True)) == sorted(permutations(MIXED, 2))


@pytest.mark.parametrize("when", ["tools", "streaming"])
async def test_one_chat_goes_from_every_provider_to_every_other(tmp_path: Path, when: When) -> None:
    """The provider also changes during tool loops and while replies arrive.

    One history contains the encrypted parts of all.
    """
    walk = round_trip(MIXED)
    async with open_chat(tmp_path, walk, DEMANDING, when) as chat:
        await chat.play(DEMANDING)
        number = 0
        while chat.switches < len(walk):
            number += 1
            # Not always the same turns, or some providers would never get to call a tool.
            await chat.play(again(DEMANDING[number % 3 :], number))
        assert chat.problems() == []
        silent = {name for name, provider in chat.providers.items() if not provider.planted}
        assert silent == {"azure", "vllm", "nim", "kimi"}


LONG_LOOP: Story = (
    Turn(f"Here is a log.\n{long_text(41_000)}", (Step("I see.", "So long."),)),
    Turn("Compare it.", (Step("I read.", "The other log.", (READ,)), Step("They differ.", "In line 3."))),
    Turn("Where?", (Step("In line 3.", "As I said."),)),
    Turn("And where else?", (Step("Nowhere.", "Only there."),)),
)


@pytest.mark.parametrize("other", ["openai", "gemini", "anthropic@localhost", "responses@localhost"])
@pytest.mark.parametrize("native", NATIVE)
async def test_after_a_providers_compaction_the_next_one_reads_the_full_history(
    tmp_path: Path, native: str, other: str
) -> None:
    """R-542: when the first provider is asked again, it compacts again; its block never reaches the other."""
    route = (native, native, other, native)
    async with open_chat(tmp_path, route, LONG_LOOP, window=64_000, windows={other: 200_000}) as chat:
        await chat.play(LONG_LOOP[:2])
        assert len(chat.compactions) == 1
        assert "provider" in chat.compactions[0].summariser
        await chat.play(LONG_LOOP[2:3])
        assert any("the full history is sent" in notice.text for notice in chat.bench.of(Notice))
        await chat.play(LONG_LOOP[3:])
        assert chat.problems() == []
        assert len(chat.compactions) == 2


SHORT: Story = (
    Turn(
        "Read it.", (Step("", "A file.", (StoryCall("read", '{"path": "a"}', long_text(300)),)), Step("Read.", "Hm."))
    ),
    Turn("And now?", (Step("Now this.", "Sure."),)),
)


@pytest.mark.parametrize("other", ["openai", "mistral", "anthropic@localhost", "responses@localhost", "opus"])
@pytest.mark.parametrize("native", ["responses", "anthropic"])
async def test_after_a_compaction_on_demand_the_next_one_reads_the_full_history(
    tmp_path: Path, native: str, other: str
) -> None:
    """R-540, R-542: the chat goes there, back, and there again.

    The returning provider also starts with the full history.
    """
    async with open_chat(tmp_path, (native, other), SHORT, settings={"on_compact": "stop"}) as chat:
        for number in range(3):
            await chat.switch(native)
            await chat.play_turn(again(SHORT, 2 * number)[0])
            chat.session.compact("Keep the names.")
            await chat.idle()
            assert len(chat.compactions) == number + 1
            await chat.play_turn(again(SHORT, 2 * number)[1])
            await chat.switch(other)
            for turn in again(SHORT, 2 * number + 1):
                await chat.play_turn(turn)
        assert chat.problems() == []


BULKY: Story = (
    Turn(
        f"Read the log again.\n{long_text(200)}",
        (
            Step("I do.", "Again?", (StoryCall("read", '{"path": "log"}', long_text(700)),)),
            Step(long_text(250), "Why?"),
        ),
    ),
)
EDITED = {
    "context_management": {
        "editing": {"trigger": 3_000, "keep_cycles": 1},
        "compaction": {"trigger": 4_500, "min_token_savings": 500},
    }
}


@pytest.mark.parametrize(
    ("first", "other"),
    [("openai", "opus"), ("gemini", "responses"), ("responses", "anthropic"), ("anthropic", "mistral")],
)
async def test_our_own_edits_and_summaries_are_sent(tmp_path: Path, first: str, other: str) -> None:
    """R-511, R-521: cleared results and summaries (as user messages) are sent.

    The windows are too small for a provider's compaction.
    """
    async with open_chat(tmp_path, (first, other), BULKY, "tools", settings=EDITED, window=12_000) as chat:
        for number in range(20):
            await chat.play(again(BULKY, number))
        assert chat.problems() == []
        assert chat.edits > 1
        assert len(chat.compactions) > 1


@pytest.mark.parametrize("other", ["openai", "mistral", "responses", "anthropic"])
@pytest.mark.parametrize("large", ["openai@localhost", "opus"])
async def test_a_model_with_a_much_smaller_window_gets_a_request_that_fits(
    tmp_path: Path, large: str, other: str
) -> None:
    """Lesson 4: the chat is edited and compacted before sending, and never refused, even on a switch in a tool loop."""
    settings = {"context_management": {"compaction": {"min_token_savings": 500}}}
    talk = (Turn("Tell me more.", (Step(long_text(1_500), "A lot."),)),)
    route = (large, *[other] * 4)
    async with open_chat(tmp_path, route, (*talk, *BULKY), "tools", settings=settings, windows={other: 6_000}) as chat:
        for number in range(4):
            await chat.switch(large)
            for more in range(5):
                await chat.play_turn(again(talk, 10 * number + more)[0])
            if number % 2:
                # Else it changes within the loop.
                await chat.switch(other)
            await chat.play_turn(again(BULKY, number)[0])
        assert chat.problems() == []
        assert len(chat.compactions) >= 4
        assert max(compacted.tokens_before for compacted in chat.compactions) > 7_000


OVERFLOW = r"refused: (?:This model's maximum|Your input exceeds|prompt is too long)"


@pytest.mark.parametrize("other", ["openai", "anthropic@localhost", "responses@localhost"])
@pytest.mark.parametrize("small", ["openai@localhost", "responses", "anthropic"])
async def test_after_an_overflow_the_chat_continues_with_any_provider(tmp_path: Path, small: str, other: str) -> None:
    """R-535: if the window was overestimated, the refused request is shrunk and sent again, once."""
    windows, believed = {small: 12_000}, {small: 150_000}
    async with open_chat(tmp_path, (other, small), BULKY, windows=windows, believed=believed) as chat:
        chat.allowed = (OVERFLOW,)
        for number in range(12):
            await chat.play(again(BULKY, number))
        assert chat.problems() == []
        assert chat.edits or any(compacted.trigger == "reactive" for compacted in chat.compactions)
        refused = chat.providers[small].refusals
        assert 0 < len(refused) <= 3


@pytest.mark.parametrize(("first", "other"), [("nim", "anthropic"), ("responses", "mistral"), ("opus", "gemini")])
async def test_messages_sent_during_tool_calls_reach_the_next_provider(tmp_path: Path, first: str, other: str) -> None:
    """Lesson 16: a user message after a result, which not every API accepts, arrives even during a switch."""
    async with open_chat(tmp_path, (first, other), DEMANDING, "tools") as chat:
        chat.queued = {1: "And quickly!", 2: "And whole.", 5: "And well."}
        await chat.play(DEMANDING)
        assert chat.problems() == []


@pytest.mark.parametrize(
    ("first", "other"), [("responses", "anthropic"), ("gemini", "responses"), ("opus", "openai"), ("nim", "opus")]
)
async def test_a_reopened_or_regenerated_chat_continues_with_the_other(tmp_path: Path, first: str, other: str) -> None:
    """Lesson 35: the chat continues from the log, with its encrypted parts.

    The old answer is no longer in the history.
    """
    story = (*DEMANDING[:3], *LONG_LOOP)
    async with open_chat(tmp_path, (first, other), story, window=64_000) as chat:
        for turn in story:
            await chat.play((turn,))
            await chat.switch(other if chat.session.adapter_name == first else first)
            await chat.reopen()
            await chat.answer_again(Step("In other words.", "Once more."))
        assert chat.problems() == []


async def test_models_of_one_endpoint_share_its_encrypted_parts(tmp_path: Path) -> None:
    """Another model of the provider gets the signed parts back, whichever model wrote them."""
    async with open_chat(tmp_path, ("anthropic",), LONG_LOOP, window=64_000, parameters={}) as chat:
        models = [SONNET.id, OPUS.id, HAIKU.id]
        for number, turn in enumerate((*LONG_LOOP[:2], *again(SHORT, 1), *again(SHORT, 2), *again(SHORT, 3))):
            await chat.session.use_model("anthropic", models[number % 3])
            await chat.play_turn(turn)
        assert chat.problems() == []


async def test_a_seal_sent_to_another_endpoint_is_detected() -> None:
    """A single seal in another provider's request is reported as a leak; this checks the test itself."""
    stage = SwitchingChat(iter(()))
    async with open_providers(("gemini", "gemini@localhost"), stage) as providers:
        providers["gemini"].planted.add(b"c2VhbGVkIGJ5IGdlbWluaSBpdHNlbGY=")
        body = b'{"messages": [{"x": "c2VhbGVkIGJ5IGdlbWluaSBpdHNlbGY="}]}'
        providers["gemini@localhost"].look_at(Received("POST", "/v1/other", {}, body))
        assert len(leaks(providers.values())) == 1
    stage.close()
