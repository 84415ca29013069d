"""Rules for all wire formats: the endpoints that get encrypted parts back (R-542)."""

from __future__ import annotations

import pytest

from codecompanion.adapters.wire_format import origin_of


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://api.openai.com/v1", "f@api.openai.com"),
        ("https://API.OpenAI.com/other", "f@api.openai.com"),
        ("http://localhost:4000/v1", "f@localhost:4000"),
        ("http://127.0.0.1:4000/v1", "f@127.0.0.1:4000"),
        ("http://[::1]:4000", "f@[::1]:4000"),
        ("https://user:secret@gateway.test/v1?key=secret", "f@gateway.test"),
        ("", "f@"),
    ],
)
def test_an_origin_is_a_format_at_a_host_and_port(address: str, origin: str) -> None:
    """Two servers on one machine are two endpoints; secrets in an address are not part of it."""
    assert origin_of("f", address) == origin
