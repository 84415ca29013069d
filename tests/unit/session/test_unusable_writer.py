"""A model that wrote no usable summary is not asked again in its chat: a summary is written from the log at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.errors import NetworkFailed
from codecompanion.wire.events import Compacted
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, says, submit

ANSWER = "A queue is a list that is read from its front; what comes first is served first. "
JUNK = "Sure! I am happy to help you."
SAID = "The user asks what a queue is and how the harbour of the project uses one."
KNOWN = "no model: scripted-1 wrote no usable summary"


class Played:
    """A chat whose model answers summary requests with `summary`."""

    def __init__(self, tmp_path: Path, policy: str, window: int) -> None:
        self.summary: Reply = says(JUNK)
        self.bench = Bench(tmp_path, ScriptedAdapter("s", self.reply), window=window, settings={"policy": policy})
        self.answer = says(ANSWER * (window // 300))
        self.number = 0

    def reply(self, request: ChatRequest) -> Reply:
        return self.summary if request.purpose == "summary" else self.answer

    async def start(self) -> None:
        self.session = await self.bench.open()

    async def until_compacted(self, times: int) -> list[str]:
        """Continue until the chat was compacted that many times in total; return the writers of the summaries."""
        while len(self.bench.of(Compacted)) < times and self.number < 150:
            self.number += 1
            text = f"Question {self.number}: what is a queue, and how does the harbour use it? " + "Please tell. " * 40
            self.session.submit(submit(text, self.number))
            await self.bench.idle(self.session)
        assert not self.bench.bugs
        return [event.summariser for event in self.bench.of(Compacted)]

    async def compact(self) -> None:
        self.session.compact("")
        await self.bench.idle(self.session)

    @property
    def asked(self) -> int:
        return sum(request.purpose == "summary" for request in self.bench.adapter.requests)


@pytest.mark.parametrize("window", [4_096, 8_192, 24_000])
@pytest.mark.parametrize("policy", [name for name in policy_names() if name != "kodacode"])
async def test_after_one_unusable_summary_the_model_is_not_asked_again(
    tmp_path: Path, policy: str, window: int
) -> None:
    """SmolLM2-135M wrote none in 24 turns, and each attempt took as long as the one before."""
    chat = Played(tmp_path, policy, window)
    await chat.start()
    await chat.until_compacted(1)
    before = chat.asked
    written = await chat.until_compacted(4)
    assert before <= 4
    assert before or window < 6_000  # where it may not pay to ask at all
    assert chat.asked == before
    assert written[1:] == [KNOWN if before else "no model"] * 3


async def test_a_manual_compaction_asks_again_and_a_usable_summary_counts(tmp_path: Path) -> None:
    chat = Played(tmp_path, "codecompanion", 8_192)
    await chat.start()
    await chat.until_compacted(2)
    before = chat.asked
    chat.summary = says(nine_sections(SAID))
    await chat.compact()
    assert chat.asked == before + 1
    written = await chat.until_compacted(4)
    assert written[-1].startswith("scripted-1")


async def test_a_failed_call_does_not_disqualify_the_model(tmp_path: Path) -> None:
    chat = Played(tmp_path, "adaptive", 8_192)
    chat.summary = (NetworkFailed("The provider is down."),)
    await chat.start()
    written = await chat.until_compacted(2)
    assert chat.asked == 2
    assert KNOWN not in written


async def test_strict_asks_as_its_document_requires(tmp_path: Path) -> None:
    chat = Played(tmp_path, "cowork strict", 8_192)
    await chat.start()
    await chat.until_compacted(1)
    before = chat.asked
    await chat.until_compacted(2)
    assert chat.asked > before


@pytest.mark.parametrize("is_own", [True, False], ids=["own server", "provider"])
async def test_a_model_of_an_own_server_is_not_asked_in_the_next_chat_either(tmp_path: Path, is_own: bool) -> None:
    chat = Played(tmp_path, "adaptive", 8_192)
    if is_own:
        entry = AdapterSettings(name="s", kind="offline", base_url="http://localhost:8080", local_server=True)
        chat.bench.services.adapters.add(chat.bench.adapter, entry)
    await chat.start()
    await chat.until_compacted(1)
    first, chat.number = chat.asked, 0
    chat.session = await chat.bench.open("chat-2")
    await chat.until_compacted(2)
    assert (chat.asked == first) is is_own
