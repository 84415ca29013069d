"""Fixtures with a running server of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.providers.anthropic.server import AnthropicServer
from tests.providers.responses.server import ResponsesServer


@pytest.fixture
async def anthropic_server() -> AsyncIterator[AnthropicServer]:
    """Yield a running Messages server with an empty script; tests put replies into `server.script`."""
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def responses_server() -> AsyncIterator[ResponsesServer]:
    """Yield a running Responses server that repeats the user's words until it has a script."""
    async with ResponsesServer() as server:
        yield server
