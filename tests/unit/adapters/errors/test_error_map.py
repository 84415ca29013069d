"""Every transport error is mapped to one of our classes and one sentence."""

from __future__ import annotations

import builtins
import ssl
from typing import Any

import anyio
import httpx2
import pytest

import codecompanion.errors as ours
from codecompanion.adapters.errors.error_map import (
    Endpoint,
    error_from_exception,
    error_from_payload,
    error_from_status,
    provider_message,
)
from codecompanion.adapters.errors.exception_kinds import EXCEPTION_KINDS, kind_of
from codecompanion.adapters.transport.delivery import AnswerLost, NotDelivered

ENDPOINT = Endpoint(
    name="openai", base_url="https://user:pw@api.openai.com/v1?k=v", key_label="OPENAI_API_KEY", model="gpt-4o"
)
REQUEST = httpx2.Request("POST", "https://api.openai.com/v1/chat/completions", headers={"Authorization": "Bearer sk-1"})


TRANSPORT = sorted(
    {
        kind
        for kind in vars(httpx2).values()
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
    },
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", TRANSPORT, ids=lambda kind: kind.__name__)
def test_every_exception_of_the_transport_has_a_row(kind: type[BaseException]) -> None:
    """A new class in a new httpx2 fails here instead of becoming an unexpected error."""
    assert kind.__name__ in EXCEPTION_KINDS


def test_the_walk_finds_the_exceptions() -> None:
    """Otherwise the test above would have no cases."""
    assert {"ReadTimeout", "RemoteProtocolError", "InvalidURL"} <= {kind.__name__ for kind in TRANSPORT}


@pytest.mark.parametrize(
    "kind",
    [
        *(ssl.SSLError, ssl.SSLCertVerificationError, anyio.EndOfStream, anyio.ClosedResourceError, TimeoutError),
        *(anyio.BrokenResourceError, builtins.ConnectionResetError, BrokenPipeError, OSError),
    ],
    ids=lambda kind: kind.__name__,
)
def test_errors_of_sockets_and_tls_have_a_row(kind: type[BaseException]) -> None:
    """httpx2 maps only some of them."""
    assert kind_of(kind()) is not None


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        ('{"error": {"message": "café nicht", "code": "context_length_exceeded"}}'.encode("latin-1"), "latin-1"),
        (b'{"error": {"message": "caf\\u00e9 nicht", "code": "context_length_exceeded", "share": NaN}}', "utf-8"),
    ],
)
def test_an_error_body_is_decoded_in_its_charset_and_with_nan(content: bytes, charset: str) -> None:
    """Otherwise the code that identifies a request as too long would be lost."""
    headers = {"Content-Type": f"application/json; charset={charset}"}
    response = httpx2.Response(400, content=content, headers=headers, request=REQUEST)
    error = error_from_exception(httpx2.HTTPStatusError("refused", request=REQUEST, response=response), ENDPOINT)
    assert isinstance(error, ours.ContextOverflow)
    assert "café nicht" in str(error)


def status_error(status: int, body: Any, **headers: str) -> httpx2.HTTPStatusError:
    response = httpx2.Response(status, json=body, headers=headers, request=REQUEST)
    return httpx2.HTTPStatusError("refused", request=REQUEST, response=response)


def said(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "code": code, "type": "invalid_request_error"}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, said("Unknown parameter"), ours.RequestRejected, False),
        (401, said("Incorrect API key"), ours.AuthenticationFailed, False),
        (402, said("Insufficient Balance"), ours.RateLimited, False),
        (403, said("Country not supported"), ours.AuthenticationFailed, False),
        (404, said("The model `x` does not exist", "model_not_found"), ours.ModelNotFound, False),
        (404, said("Invalid URL"), ours.RequestRejected, False),
        (404, {}, ours.ModelNotFound, False),
        (400, said("gpt-99 is not a valid model ID"), ours.ModelNotFound, False),
        (408, {}, ours.NetworkFailed, True),
        (409, {}, ours.Overloaded, True),
        (413, "Payload Too Large", ours.ContextOverflow, False),
        (422, {"detail": [{"msg": "bad field"}]}, ours.RequestRejected, False),
        (429, said("Rate limit reached"), ours.RateLimited, True),
        (429, said("You exceeded your current quota", "insufficient_quota"), ours.RateLimited, False),
        (500, said("oops"), ours.Overloaded, True),
        (501, {}, ours.Overloaded, False),
        (502, "<html>Bad gateway</html>", ours.Overloaded, True),
        (504, {}, ours.NetworkFailed, True),
        (520, "<html>Web server is returning an unknown error</html>", ours.NetworkFailed, True),
        (521, "<html>Web server is down</html>", ours.Overloaded, True),
        (524, "<html>A timeout occurred</html>", ours.NetworkFailed, True),
        (529, said("overloaded"), ours.Overloaded, True),
        (400, said("rejected", "content_filter"), ours.ContentRefused, False),
        (400, said("The response was filtered due to the content management policy"), ours.ContentRefused, False),
        (403, said("Your input was flagged by moderation"), ours.ContentRefused, False),
    ],
)
def test_a_status_is_mapped_to_its_class(status: int, body: Any, kind: type[Exception], retryable: bool) -> None:
    """The status arrives in a real exception of the transport, as in production."""
    error = error_from_exception(status_error(status, body), ENDPOINT)
    assert type(error) is kind
    assert error.retryable is retryable
    assert error.perhaps_processed is (kind is ours.NetworkFailed)
    assert str(error).startswith("openai: ")
    assert "\n" not in str(error)
    assert "<html>" not in str(error)


OVERFLOWS = [
    (
        400,
        "This model's maximum context length is 128000 tokens. You requested 130000 tokens.",
        "",
    ),
    (400, "whatever", "context_length_exceeded"),
    (
        400,
        "the request exceeds the available context size. try increasing it",
        "exceed_context_size_error",
    ),
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", ""),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", ""),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", ""),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", ""),
    (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens.", ""),
    (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", ""),
    (400, "prompt token count of 70000 exceeds the limit of 64000", "model_max_prompt_tokens_exceeded"),
    (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 50000.", "rate_limit_exceeded"),
    (500, "Input is too long for requested model: context window exceeded", ""),
    (422, "Too many tokens in the prompt", ""),
]


@pytest.mark.parametrize(("status", "message", "code"), OVERFLOWS)
def test_every_wording_of_too_long_is_an_overflow(status: int, message: str, code: str) -> None:
    """R-535: the session can recover from this error only if it is recognised."""
    error = error_from_status(status, said(message, code or None), {}, ENDPOINT)
    assert type(error) is ours.ContextOverflow
    body = f'{{"error": {{"message": "{message}", "code": "{code}"}}}}'.encode()
    assert type(error_from_payload(body, ENDPOINT)) is ours.ContextOverflow


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
        "Invalid 'tools[0].function.name': string too long.",
        "Image is too large.",
    ],
)
def test_other_size_errors_are_not_overflows(message: str) -> None:
    """Compacting would not help with these errors."""
    assert type(error_from_status(400, said(message), {}, ENDPOINT)) is ours.RequestRejected


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (NotDelivered(), ours.NetworkFailed, "no connection to https://api.openai.com/v1"),
        (AnswerLost(), ours.StreamCut, "before the reply began. The request may have been processed and billed."),
        (httpx2.ConnectTimeout("connect", request=REQUEST), ours.NetworkFailed, "within 10 s"),
        (httpx2.ReadTimeout("", request=REQUEST), ours.NetworkFailed, "sent nothing for 120 s"),
        (httpx2.ReadError("", request=REQUEST), ours.StreamCut, "the connection was lost"),
        (httpx2.RemoteProtocolError("peer closed", request=REQUEST), ours.StreamCut, "the connection was lost."),
        (httpx2.DecodingError("bad gzip", request=REQUEST), ours.MalformedReply, "cannot be read (bad gzip)"),
        (
            ModuleNotFoundError("No module named 'socksio'"),
            ours.RequestRejected,
            "socksio'). Run :CodeCompanion install",
        ),
        (ConnectionRefusedError(111, "Connect call failed ('::1', 1)"), ours.NetworkFailed, "(connection refused)"),
        (httpx2.InvalidURL("no host"), ours.RequestRejected, "could not be sent (no host)"),
        (ZeroDivisionError("x"), ours.AdapterError, "unexpected error: ZeroDivisionError"),
        (ours.MissingKey("openai: no key"), ours.MissingKey, "openai: no key"),
    ],
)
def test_an_exception_becomes_a_sentence(error: Exception, kind: type[Exception], words: str) -> None:
    """The class and the wording are right; the URL appears without user, password and query."""
    mapped = error_from_exception(error, ENDPOINT)
    assert type(mapped) is kind
    assert words in str(mapped)
    assert "pw" not in str(mapped)
    assert "k=v" not in str(mapped)


def test_the_innermost_reason_is_shown() -> None:
    """The exceptions that wrap it are less specific."""
    error = NotDelivered()
    error.__cause__ = httpx2.ConnectError("All connection attempts failed", request=REQUEST)
    error.__cause__.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    assert "self-signed certificate" in str(error_from_exception(error, ENDPOINT))


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b'{"error": {"message": "x", "type": "server_error"}}', ours.Overloaded),
        (b'{"error": {"message": "x", "type": "rate_limit_error"}}', ours.RateLimited),
        (b'{"error": {"message": "x", "code": 502}}', ours.Overloaded),
        (b'{"error": {"message": "x", "code": "429"}}', ours.RateLimited),
        (b'{"error": {"message": "x", "code": "invalid_api_key"}}', ours.AuthenticationFailed),
        (b'{"error": "plain text"}', ours.RequestRejected),
        (
            b'{"object": "error", "message": "vLLM", "type": "BadRequestError", "code": 400}',
            ours.RequestRejected,
        ),
        (b'{"message": "The model foo does not exist"}', ours.ModelNotFound),
        (b'[{"error": {"code": 400, "message": "Gemini sends a list"}}]', ours.RequestRejected),
        (b"not json at all", ours.RequestRejected),
        (b"\xff\xfe", ours.RequestRejected),
        (b"{}", ours.RequestRejected),
        (b"null", ours.RequestRejected),
    ],
)
def test_an_error_object_in_a_reply_is_mapped_to_its_class(payload: bytes, kind: type[Exception]) -> None:
    """Providers differ in its content."""
    error = error_from_payload(payload, ENDPOINT)
    assert type(error) is kind
    assert provider_message(payload, ENDPOINT).endswith((".", "…"))


def test_the_reason_inside_openrouters_message_is_shown() -> None:
    """`Provider returned error` alone is meaningless."""
    body = {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "gemini is rate-limited"}}}
    assert "gemini is rate-limited" in str(error_from_status(429, body, {}, ENDPOINT))


def test_a_long_message_of_a_provider_is_shortened() -> None:
    """The result is one sentence, not a page; line breaks become spaces."""
    text = str(error_from_status(400, said("word\n" * 500), {}, ENDPOINT))
    assert len(text) < 420
    assert "\n" not in text


def test_retry_after_is_kept_with_the_error() -> None:
    """It is read from the transport's exception, whose headers are case-insensitive."""
    error = error_from_exception(status_error(429, said("slow"), **{"Retry-After": "3"}), ENDPOINT)
    assert isinstance(error, ours.RateLimited)
    assert error.retry_after_s == 3.0


def test_a_provider_loading_a_model_keeps_its_message_and_its_wait() -> None:
    """For servers other than local ones, the request is retried after that time, like any other."""
    error = error_from_exception(
        status_error(503, said("Model x is currently loading"), **{"Retry-After": "20"}), ENDPOINT
    )
    assert isinstance(error, ours.ServerLoading)
    assert error.retry_after_s == 20.0
    assert str(error).endswith("is loading the model (503). The provider says: Model x is currently loading.")


def test_a_refused_request_without_a_key_says_where_to_name_one() -> None:
    error = error_from_status(401, {}, {}, Endpoint(name="mine"))
    assert "mine: the request without a key was refused (401). Set env.api_key to the name of" in str(error)
