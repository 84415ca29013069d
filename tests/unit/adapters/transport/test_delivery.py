"""Consequences of a transport failure: a request is sent again before its last byte was sent, never after."""

from __future__ import annotations

import ssl

import anyio
import httpx2
import pytest

from codecompanion.adapters.errors.error_map import Endpoint, error_from_exception
from codecompanion.adapters.transport.delivery import AnswerLost, Delivery, NotDelivered


@pytest.mark.parametrize(
    "error",
    [
        *(httpx2.ReadError("x"), httpx2.RemoteProtocolError("x"), ssl.SSLError("x")),
        *(OSError("x"), ConnectionResetError("x"), BrokenPipeError("x")),
        *(anyio.EndOfStream(), anyio.BrokenResourceError(), anyio.ClosedResourceError()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_connection_error_after_the_last_byte_is_a_lost_answer(error: Exception) -> None:
    """Errors that httpx2 passes through unmapped count as well."""
    delivery = Delivery()
    assert type(delivery.failure(error)) is NotDelivered
    delivery.is_complete = True
    failure = delivery.failure(error)
    assert type(failure) is AnswerLost
    assert failure.__cause__ is error
    assert error_from_exception(failure, Endpoint(name="t")).perhaps_processed


def test_other_errors_are_unchanged() -> None:
    """They are not about the connection."""
    error = ValueError("x")
    assert Delivery().failure(error) is error
