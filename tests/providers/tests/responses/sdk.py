"""Helpers that use the official SDK with the fake Responses server."""

from __future__ import annotations

from typing import Any

from tests.providers.responses.rules import Rules
from tests.providers.responses.server import ResponsesServer

ENCRYPTED = ["reasoning.encrypted_content"]
SMALL = Rules(models=("test-model",), window=5000, min_threshold=1000)
"""A provider whose limits are reached with few words."""


def open_client(server: ResponsesServer, key: str = "sk-test") -> Any:
    """Return a client that does not retry; close it with `async with`."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=server.url, api_key=key, max_retries=0)


async def create(client: Any, items: Any = "hi", **fields: Any) -> Any:
    """Request a response that is not stored and return it."""
    return await client.responses.create(model="test-model", input=items, store=False, **fields)


async def collect(client: Any, items: Any = "hi", **fields: Any) -> list[Any]:
    """Request a streamed response and return its events."""
    return [event async for event in await create(client, items, stream=True, **fields)]


def sent_back(response: Any) -> list[Any]:
    """Return the items of a response in the form used in the next input."""
    return [item.model_dump(exclude_none=True, warnings=False) for item in response.output]
