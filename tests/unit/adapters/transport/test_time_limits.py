"""The limit on silence, by the endpoint's location and the prompt's length (lesson 18)."""

from __future__ import annotations

import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.errors.error_map import Endpoint, error_from_exception
from codecompanion.adapters.errors.retry import wait_before_retry
from codecompanion.adapters.transport.time_limits import max_keep_alive_s, max_silence_s, place_of
from codecompanion.errors import NetworkFailed, RateLimited, StreamCut
from codecompanion.formats.byte_limits import KEEP_ALIVE_S


@pytest.mark.parametrize(
    ("address", "configured", "limit"),
    [
        ("http://localhost:11434/v1", 0.0, None),
        ("http://192.168.1.7:1234/v1", 0.0, KEEP_ALIVE_S),
        ("https://api.openai.com/v1", 0.0, KEEP_ALIVE_S),
        ("http://localhost:11434/v1", 30.0, 30.0),
        ("https://api.openai.com/v1", 30.0, 30.0),
    ],
)
def test_keep_alives_extend_the_wait_to_an_hour_or_as_configured(
    address: str, configured: float, limit: float | None
) -> None:
    """A local server may read a long prompt for any time."""
    settings = AdapterSettings(name="a", kind="openai", base_url=address, idle_timeout_s=configured)
    assert max_keep_alive_s(settings) == limit


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("http://localhost:11434/v1", "loopback"),
        ("http://127.0.0.1:8080", "loopback"),
        ("http://127.8.8.8", "loopback"),
        ("http://[::1]:8080/v1", "loopback"),
        ("http://[::ffff:127.0.0.1]:8080/v1", "loopback"),
        ("http://0.0.0.0:8000", "loopback"),
        ("http://api.localhost", "loopback"),
        ("http://localhost.:1", "loopback"),
        ("http://192.168.1.7:1234/v1", "private"),
        ("http://[fd00::7]:1234/v1", "private"),
        ("http://[fe80::1%25eth0]:1234/v1", "private"),
        ("http://workstation:1234/v1", "private"),
        ("http://box.local/v1", "private"),
        ("https://api.openai.com/v1", "public"),
        ("https://[2606:4700::1111]/v1", "public"),
        ("http://[::1", "public"),
        ("", "public"),
    ],
)
def test_the_location_of_an_endpoint_is_classified(address: str, place: str) -> None:
    """Names, IPv4 and IPv6 addresses are classified with and without ports; an unreadable address counts as remote."""
    assert place_of(address) == place


def settings(base_url: str, **more: float) -> AdapterSettings:
    return AdapterSettings(name="x", kind="openai_compatible", base_url=base_url, **more)


def test_a_local_server_is_awaited_without_a_limit() -> None:
    """A local server may need many minutes for a long prompt.

    The status line counts the time, and `q` stops the request.
    """
    assert max_silence_s(settings("http://127.0.0.1:8080/v1"), 4_000_000) is None


def test_a_long_prompt_gets_more_time() -> None:
    """The limit is at least ten minutes, for hidden reasoning."""
    short = max_silence_s(settings("https://api.openai.com/v1"), 2_000)
    long = max_silence_s(settings("https://api.openai.com/v1"), 4_000_000)
    assert short is not None
    assert long is not None
    assert 600 <= short < long


def test_a_configured_limit_is_used_unchanged() -> None:
    """Lesson 13: a configured limit also applies on this machine and to long prompts."""
    for address in ("http://127.0.0.1:1", "http://192.168.0.2", "https://api.openai.com/v1"):
        assert max_silence_s(settings(address, idle_timeout_s=7.0), 4_000_000) == 7.0


def test_a_request_that_may_have_been_processed_is_repeated_only_by_the_user() -> None:
    """Each try may be billed; a rate limit was not processed, and a count is free."""
    assert wait_before_retry(StreamCut("x"), 1, max_retries=3, random=0.5) is None
    assert wait_before_retry(StreamCut("x"), 1, max_retries=3, random=0.5, is_free=True) is not None
    assert wait_before_retry(RateLimited("x"), 3, max_retries=3, random=0.5) is not None


def test_errors_in_a_group_are_reported_by_the_known_one() -> None:
    """Tasks of the transport fail together."""
    group = ExceptionGroup(
        "unhandled", [ZeroDivisionError("x"), ExceptionGroup("more", [ConnectionRefusedError(111, "y")])]
    )
    error = error_from_exception(group, Endpoint(name="test", base_url="http://[::1]:9"))
    assert type(error) is NetworkFailed
    assert "no connection to http://[::1]:9 (connection refused)" in str(error)
