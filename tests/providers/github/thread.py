"""The loopback GitHub in a thread of its own, for tests that are not asynchronous."""

from __future__ import annotations

from tests.providers.github.server import GitHubServer
from tests.providers.loopback.thread import LoopbackThread


class GitHubServerThread(LoopbackThread[GitHubServer]):
    """Context manager: `with GitHubServerThread() as server:`; tests may set the server's attributes."""

    def __init__(self) -> None:
        super().__init__(GitHubServer, "openai.chat")
