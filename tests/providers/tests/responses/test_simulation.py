"""The simulation of the fake Responses server matches the provider's guides: cache, compaction, counting, storing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.providers.responses.answers import Compacted, Reply, Text, Thought, reply
from tests.providers.responses.ledger import Ledger
from tests.providers.responses.server import ResponsesServer
from tests.providers.tests.responses.sdk import ENCRYPTED, SMALL, collect, create, open_client, sent_back

OVER_THRESHOLD: Any = {"context_management": [{"type": "compaction", "compact_threshold": 2000}]}


@pytest.fixture
async def server() -> AsyncIterator[ResponsesServer]:
    async with ResponsesServer(rules=SMALL) as running:
        yield running


@pytest.fixture
async def client(server: ResponsesServer) -> AsyncIterator[Any]:
    async with open_client(server) as opened:
        yield opened


async def test_usage_reports_cached_tokens_by_a_clock_that_tests_advance(server: ResponsesServer, client: Any) -> None:
    """Prefixes of 1,024 tokens and more are cached in steps of 128.

    With another key, another prefix or five minutes later there is no hit.
    """
    start = "word " * 1400

    async def cached(text: str, **fields: Any) -> int:
        usage = (await create(client, text, **fields)).usage
        assert usage.total_tokens == usage.input_tokens + usage.output_tokens
        return int(usage.input_tokens_details.cached_tokens)

    assert await cached(start) == 0
    assert await cached(start + "and so on") == 1280
    assert await cached(start, prompt_cache_key="other") == 0
    assert await cached("No: " + start) == 0
    assert await cached(start, instructions="Be brief.") == 0
    assert await cached(start, prompt_cache_key="other") == 1408
    server.cache.now_s += 301
    assert await cached(start) == 0
    assert await cached("word " * 1000) == 0, "too short to be kept"
    assert await cached("word " * 1000) == 0


async def test_over_the_threshold_it_compacts_first_and_then_answers(server: ResponsesServer, client: Any) -> None:
    """The compaction item comes first and makes the next prompt small; earlier items may be kept or dropped."""
    server.script = [reply("Done")]
    long: list[Any] = [{"role": "user", "content": "word " * 2500}]
    events = await collect(client, long, **OVER_THRESHOLD)
    items = [event.item.type for event in events if event.type == "response.output_item.done"]
    assert items == ["compaction", "message"]
    assert events[-1].response.usage.input_tokens > 2500
    tail = [*sent_back(events[-1].response), {"role": "user", "content": "Go on"}]
    whole = await create(client, [*long, *tail], **OVER_THRESHOLD)
    pruned = await create(client, tail, **OVER_THRESHOLD)
    assert whole.usage.input_tokens == pruned.usage.input_tokens < 600
    assert [item.type for item in pruned.output] == ["message"]


async def test_the_usage_of_a_compacting_response_can_count_the_remainder() -> None:
    """The guide does not specify which count is used, so an adapter must handle both."""
    async with ResponsesServer(rules=SMALL, reports_compacted_size=True) as server, open_client(server) as client:
        response = await create(client, "word " * 2500, **OVER_THRESHOLD)
        assert response.usage.input_tokens < 600


async def test_compact_keeps_user_messages_beside_one_item(server: ResponsesServer, client: Any) -> None:
    """Its output is the next input unchanged; omitted messages are noted."""
    history: list[Any] = [
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": "word " * 2000},
        {"role": "user", "content": [{"type": "input_text", "text": "Second"}]},
    ]
    server.compactions = [Reply((Compacted(tokens=300),))]
    compacted = await client.responses.compact(model="test-model", input=history, instructions="Keep names")
    assert compacted.object == "response.compaction"
    assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
    assert [item.content[0].text for item in compacted.output[:2]] == ["First", "Second"]
    assert compacted.usage.output_tokens == 300
    assert compacted.usage.input_tokens > 2000
    window = sent_back(compacted)
    response = await create(client, [*window, {"role": "user", "content": "Go on"}])
    assert 300 < response.usage.input_tokens < 340
    assert server.notes == []
    await create(client, [window[-1], {"role": "user", "content": "Go on"}])
    assert server.notes == ["what /responses/compact returned was pruned"]


async def test_a_trigger_yields_only_a_compaction(server: ResponsesServer, client: Any) -> None:
    """It has its own event; the script is not used up."""
    server.script = [reply("later")]
    events = await collect(client, [{"role": "user", "content": "hi"}, {"type": "compaction_trigger"}])
    assert [item.type for item in events[-1].response.output] == ["compaction"]
    assert [event.output_index for event in events if event.type == "response.compaction.compacting"] == [0, 0]
    assert len(server.script) == 1


async def test_counting_needs_no_answer_and_has_no_window(server: ResponsesServer, client: Any) -> None:
    """It counts in the same way as `create`."""
    counted = await client.responses.input_tokens.count(model="test-model", input="word " * 3000, instructions="x")
    used = (await create(client, "word " * 3000, instructions="x")).usage.input_tokens
    assert counted.input_tokens == used > 3000
    assert (await client.responses.input_tokens.count(model="test-model", input="word " * 9000)).input_tokens > 9000


async def test_a_stored_response_can_be_continued(server: ResponsesServer, client: Any) -> None:
    """This works by response or by item; with `store` false, by neither."""
    from openai import BadRequestError, NotFoundError

    stored = await client.responses.create(model="test-model", input="Hi")
    after = await create(client, "And?", previous_response_id=stored.id)
    assert after.usage.input_tokens > stored.usage.input_tokens
    referred: Any = [{"type": "item_reference", "id": stored.output[0].id}, {"role": "user", "content": "And?"}]
    assert (await create(client, referred)).output_text == "You said: And?"
    with pytest.raises(BadRequestError, match="not found") as caught:
        await create(client, "And?", previous_response_id=after.id)
    assert caught.value.code == "previous_response_not_found"
    with pytest.raises(NotFoundError, match="not persisted"):
        await create(client, [{"type": "item_reference", "id": after.output[0].id}])
    assert server.notes == ["store is not false"]


async def test_a_provider_recognises_its_own_items_after_a_restart() -> None:
    """Two servers with one ledger are the same provider.

    A different provider refuses content encrypted by the first.
    """
    from openai import BadRequestError

    ledger, kept = Ledger(), Reply((Thought(("Why",)), Text("So")))
    async with ResponsesServer([kept], ledger=ledger) as first, open_client(first) as client:
        output = sent_back(await create(client, include=ENCRYPTED))
    again: list[Any] = [*output, {"role": "user", "content": "And?"}]
    async with ResponsesServer(ledger=ledger) as second, open_client(second) as client:
        assert (await create(client, again)).output_text == "You said: And?"
    async with ResponsesServer() as stranger, open_client(stranger) as client:
        with pytest.raises(BadRequestError) as caught:
            await create(client, again)
        assert caught.value.code == "invalid_encrypted_content"
