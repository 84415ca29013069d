"""The loopback GitHub in a thread of its own, for tests that are not asynchronous."""

from __future__ import annotations

from tests.providers.github.server import GitHubServer
from tests.providers.loopback.thread import LoopbackThread


class GitHubServerThread(LoopbackThread[GitHubServer]):
    """`with GitHubServerThread() as server:`; its attributes may be set from the test."""

    def __init__(self) -> None:
        super().__init__(GitHubServer, "openai.chat")
