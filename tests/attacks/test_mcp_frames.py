"""Mutated or truncated frames from an MCP server: the result is an answer or one error sentence, never a crash."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codecompanion.mcp.server_types import McpError
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount
from tests.mcp.listener import Listener, connection, spec

START_S, CALL_S = 6.0, 1.0
"""Seconds to wait for an answer that a mutated frame may have swallowed."""
AT_ONCE = 8


async def outcome(seed: int) -> str:
    """Talk to a server that mutates four of ten frames; return the plugin's failure, or "" if there was none."""
    one = connection(spec(start_timeout_s=START_S), Listener(), MUTATE=str(seed))
    try:
        await one.open()
        for arguments in ({"text": "a"}, {"text": "ü"}):
            await ask(one, arguments)
    except McpError as error:
        return "" if "\n" not in str(error) and str(error) else f"not one sentence: {error!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await one.close()
    return ""


async def ask(one: Any, arguments: dict[str, Any]) -> None:
    try:
        given = await one.call("echo", arguments, CALL_S)
        assert isinstance(given.text, str)
    except McpError as error:
        if "\n" in str(error) or not str(error):
            raise


@pytest.mark.slow("mutated frames, each to a client of its own")
async def test_mutated_frames_are_answers_or_one_sentence(tally: Tally) -> None:
    seeds, problems, tried = list(range(amount(8, full=120))), list[str](), 0
    for at in range(0, len(seeds), AT_ONCE):
        some = seeds[at : at + AT_ONCE]
        found = await asyncio.gather(*map(outcome, some))
        tried += len(some)
        problems += [f"{seed}: {problem}" for seed, problem in zip(some, found, strict=True) if problem]
    tally("mcp: mutated and cut frames", tried=tried, held=tried - len(problems))
    assert not problems, problems[:5]
