"""After a compaction the provider's cache still has the system prompt and tools: the chat's prefix is unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.wire.events import Compacted
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, says, submit

SAID = "The user asks what a queue is and how the harbour of the project uses one. The assistant explained it."
ANSWER = says("A queue is a list that is read from its front; what comes first is served first. " * 40)


def reply(request: ChatRequest) -> Reply:
    if request.purpose != "summary":
        return ANSWER
    prompt = request.messages[-1].text
    schema = next((name for name in ("cc_9", "cw_9") if nine_sections("", name).splitlines()[0][4:12] in prompt), "")
    return says(nine_sections(SAID, schema) if schema else 3 * SAID)


def tools_of(request: ChatRequest) -> str:
    return json.dumps([[tool.name, tool.description, tool.parameters] for tool in request.tools])[:-1]


@pytest.mark.parametrize("window", [4_096, 24_000])
@pytest.mark.parametrize("policy", policy_names())
async def test_system_prompt_and_tools_are_unchanged_after_a_compaction(
    tmp_path: Path, policy: str, window: int
) -> None:
    """The tool that recalls removed messages is offered from then on, after all other tools."""
    bench = Bench(tmp_path, ScriptedAdapter("s", reply), window=window, settings={"policy": policy})
    session = await bench.open()
    compacted, number = list[ChatRequest](), 0
    while len(compacted) < 2 and number < 80:
        number, before = number + 1, len(bench.of(Compacted))
        session.submit(submit(f"Question {number}: what is a queue? " + "Please tell. " * 40, number))
        await bench.idle(session)
        if len(bench.of(Compacted)) > before:
            compacted.append([request for request in bench.adapter.requests if request.purpose == "chat"][-1])
    first = bench.adapter.requests[0]
    assert first.tools
    assert [request.messages[0].text for request in compacted] == [first.messages[0].text] * 2
    assert all(tools_of(request).startswith(tools_of(first)) for request in compacted)
    assert compacted[0].tools == compacted[1].tools
