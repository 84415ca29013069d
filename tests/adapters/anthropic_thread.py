"""The Messages server in a thread of its own, for tests that are not async."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.adapters.answers import Answer
from tests.adapters.anthropic_answers import Reply
from tests.adapters.anthropic_server import AnthropicServer
from tests.adapters.loopback_thread import LoopbackThread


class AnthropicServerThread(LoopbackThread[AnthropicServer]):
    """The server with its script: `with AnthropicServerThread([…]) as server:`."""

    def __init__(self, script: Iterable[Reply | Answer] = (), **options: Any) -> None:
        entries = list(script)
        super().__init__(lambda: AnthropicServer(entries, **options), "anthropic.messages", "anthropic.count_tokens")
