"""The Chat Completions server in a thread of its own, for tests that are not async."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.providers.chat.answers import Answer
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.thread import LoopbackThread


class ChatServerThread(LoopbackThread[ChatServer]):
    """The server with its script: `with ChatServerThread([…]) as server:`."""

    def __init__(self, script: Iterable[Answer] = (), **options: Any) -> None:
        answers = list(script)
        super().__init__(lambda: ChatServer(answers, **options), "openai.chat")
