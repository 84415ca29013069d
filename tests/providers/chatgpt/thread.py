"""The loopback OpenAI for ChatGPT plans in its own thread, for tests that are not async."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.providers.chatgpt.server import ChatGPTServer
from tests.providers.loopback.answers import Answer
from tests.providers.loopback.thread import LoopbackThread
from tests.providers.responses.answers import Reply


class ChatGPTServerThread(LoopbackThread[ChatGPTServer]):
    """Context manager: `with ChatGPTServerThread() as server:`; tests may set the server's attributes."""

    def __init__(self, script: Iterable[Reply | Answer] = (), **options: Any) -> None:
        answers = list(script)
        super().__init__(lambda: ChatGPTServer(answers, **options), "openai.responses")
