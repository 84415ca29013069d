"""How a loopback server closes: no connection stays open, however late it was made."""

from __future__ import annotations

import contextlib
import socket

import pytest

from tests.patience import PATIENCE_S
from tests.providers.chat.thread import ChatServerThread


@pytest.mark.filterwarnings("error")
def test_a_connection_made_as_the_server_closes_is_closed() -> None:
    """Of twenty attempts, more than half used to leave a socket open, because listening did not end first."""
    for _ in range(20):
        with ChatServerThread() as server:
            late = socket.create_connection(("127.0.0.1", server.port))
        with late:
            late.settimeout(PATIENCE_S)
            with contextlib.suppress(ConnectionResetError):
                assert late.recv(1) == b""
