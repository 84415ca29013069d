"""The Messages server in a thread of its own, for tests that are not async."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.providers.anthropic.answers import Reply
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.loopback.answers import Answer
from tests.providers.loopback.thread import LoopbackThread


class AnthropicServerThread(LoopbackThread[AnthropicServer]):
    """The server with its script: `with AnthropicServerThread([…]) as server:`."""

    def __init__(self, script: Iterable[Reply | Answer] = (), **options: Any) -> None:
        entries = list(script)
        super().__init__(lambda: AnthropicServer(entries, **options), "anthropic.messages", "anthropic.count_tokens")
