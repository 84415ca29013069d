"""Maps a provider's failures to our error tree (`errors.py`), with a message for the user.

Three entry points, one for each form of failure: an exception of the transport, an HTTP status with a body, an error
object inside a reply. A test checks that each exception class of httpx2 has its own row. Classes are matched by name,
so that nothing is imported before the first request.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from codecompanion.adapters.errors import error_words
from codecompanion.adapters.errors.error_body import ErrorBody, decode_body, quote, read_error
from codecompanion.adapters.errors.exception_kinds import kind_of
from codecompanion.adapters.errors.overflow_words import is_overflow
from codecompanion.adapters.errors.retry import parse_retry_after
from codecompanion.adapters.keys.redact import plain_url, redact
from codecompanion.errors import (
    AdapterError,
    AuthenticationFailed,
    ContentRefused,
    ContextOverflow,
    EncryptedRefused,
    MalformedReply,
    MissingKey,
    ModelNotFound,
    NetworkFailed,
    NotConfigured,
    Overloaded,
    RateLimited,
    RequestRejected,
    ServerLoading,
    StreamCut,
)


class Remedies(msgspec.Struct, frozen=True, kw_only=True):
    """Remedies that complete an error message; the defaults are for a chat's adapter."""

    check_address: str = "env.url"
    check_path: str = "env.url and env.chat_url"
    other_key: str = "Check it, or choose another adapter with ga."
    no_key: str = "Set env.api_key to the name of the variable with your key, or choose another adapter with ga."
    other_model: str = "Choose another model with ga."
    after_silence: str = "(opts.idle_timeout)."
    after_loss: str = "The request may have been processed and billed."


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about an endpoint for error messages. `secrets` must not occur in any text. No `repr`.

    `signed_with` names the credentials that sign requests instead of a key, or is "" for a key or none. `start_command`
    starts the server on this machine; "" means unknown, None that it runs elsewhere.
    """

    name: str
    base_url: str = ""
    key_label: str = ""
    signed_with: str = ""
    model: str = ""
    secrets: tuple[str, ...] = ()
    start_command: str | None = None
    connect_timeout_s: float = 10.0
    silence_s: float | None = 120.0
    remedies: Remedies = Remedies()

    def __repr__(self) -> str:
        """Show only the name."""
        return f"Endpoint({self.name!r})"

    def say(self, text: str) -> str:
        """Return a message about this endpoint, without secrets."""
        return redact(f"{self.name}: {text}", self.secrets)


def error_from_exception(error: BaseException, endpoint: Endpoint) -> AdapterError:
    """Convert an exception of the transport to our error.

    Raise the result outside the `except` block: the foreign exception contains the request with its headers, so it
    must not become the context of the new one.
    """
    if isinstance(error, BaseExceptionGroup):
        # Several tasks of the transport failed together: the first known error is the reason.
        leaves = list(_leaves(error))
        error = next((leaf for leaf in leaves if kind_of(leaf) is not None), leaves[0])
    if isinstance(error, AdapterError):
        return error
    reason = _innermost(error)
    because = f" ({reason.rstrip('.')})" if reason else ""
    match kind_of(error):
        case "status":
            response: Any = getattr(error, "response", None)
            body = decode_body(response.text.encode())
            return error_from_status(int(response.status_code), body, response.headers, endpoint)
        case "timed out":
            return _timed_out(error, endpoint)
        case "unreachable":
            where = plain_url(endpoint.base_url)
            check = f"Check the network and {endpoint.remedies.check_address}."
            is_refused = any(isinstance(one, ConnectionRefusedError) for one in _all_causes(error))
            if is_refused and endpoint.start_command is not None:
                check = f"Start the server, or check {endpoint.remedies.check_address}."
                if endpoint.start_command:
                    check = f"Start the server with: {endpoint.start_command}"
            failed = NetworkFailed(endpoint.say(f"no connection to {where}{because}. {check}"))
            failed.nobody_listens = is_refused
            return failed
        case "lost":
            return _lost_answer(endpoint)
        case "cut":
            # without the text of the HTTP library, which does not help the user; it is in the log
            return StreamCut(endpoint.say("the connection was lost."))
        case "not sent":
            return RequestRejected(endpoint.say(f"the request could not be sent{because}."))
        case "not installed":
            return RequestRejected(endpoint.say(f"a package is missing{because}. Run :CodeCompanion install."))
        case "no sdk":
            missing = 'transport = "sdk" needs packages that are not installed. Run :CodeCompanion install sdk.'
            return NotConfigured(endpoint.say(missing))
        case "no credentials":
            return MissingKey(endpoint.say(f"{error}."))
        case "no token":
            return NetworkFailed(endpoint.say(f"{error}. Check the network."))
        case "malformed":
            return MalformedReply(endpoint.say(f"the reply cannot be read{because}."))
        case None:
            return AdapterError(endpoint.say(f"unexpected error: {type(error).__name__}{because}."))


def error_of_reply(error: BaseException, endpoint: Endpoint, *, seen_output: bool) -> AdapterError:
    """Convert a transport exception that occurred during a reply, part of which may have arrived, to our error."""
    remedies = msgspec.structs.replace(endpoint.remedies, after_loss="")
    mapped = error_from_exception(error, msgspec.structs.replace(endpoint, remedies=remedies))
    if not isinstance(mapped, NetworkFailed | StreamCut):
        return mapped
    is_silence = isinstance(mapped, NetworkFailed) and mapped.perhaps_processed
    if seen_output:
        return StreamCut(str(mapped) if is_silence else endpoint.say("the connection was lost."))
    return error_from_exception(error, endpoint) if is_silence else _lost_answer(endpoint)


def _lost_answer(endpoint: Endpoint) -> StreamCut:
    """Return the error for a connection that was lost after the whole request was sent but before the reply began."""
    return StreamCut(endpoint.say(f"the connection ended before the reply began. {endpoint.remedies.after_loss}"))


def error_from_status(status: int, body: object, headers: Mapping[str, str], endpoint: Endpoint) -> AdapterError:
    """Convert an HTTP status with its body (decoded JSON, or text) to our error."""
    said = read_error(body)
    error = _of_status(status, said, headers, endpoint)
    error.code, error.status = said.code, status
    return error


def _of_status(status: int, told: ErrorBody, headers: Mapping[str, str], endpoint: Endpoint) -> AdapterError:
    code, quote = told.code, told.sentence
    said = f" The provider says: {_end(told.quote)}" if quote else ""
    # mlx_lm's server answers every failure with 404: there, only a message with both figures is an overflow.
    may_be_size = status not in (401, 403, 404) or (status == 404 and all(told.figures))
    if status == 413 or (may_be_size and is_overflow(code, quote)):
        return ContextOverflow(endpoint.say(f"the request is too long for the model ({status}).{said}"), *told.figures)
    if status in (400, 404, 422) and error_words.is_encrypted(code, quote):
        return EncryptedRefused(
            endpoint.say(f"the provider rejected its own signed or encrypted data ({status}).{said}")
        )
    if status == 401:
        return AuthenticationFailed(endpoint.say(_key_sentence(status, endpoint)))
    if status == 403 and not error_words.FILTER.search(quote):
        check = f"Check {endpoint.signed_with or 'the key'} and the account."
        return AuthenticationFailed(endpoint.say(f"access was denied ({status}).{said} {check}"))
    if status == 404:
        return _not_found(told, endpoint)
    if status == 402 or (status in (400, 429) and error_words.NO_CREDIT.search(f"{code} {quote}")):
        return _final(RateLimited(endpoint.say(f"the account has no credit left ({status}).{said}")))
    if status == 429:
        wait = parse_retry_after(headers)
        later = f" Try again in {wait:.0f} s." if wait else ""
        return RateLimited(endpoint.say(f"too many requests (429).{said}{later}"), wait)
    if status in (408, 504, 520, 524):  # the last two are Cloudflare's: the provider received the request
        what = "returned no usable answer" if status == 520 else "did not answer in time"
        late = f"the provider {what} ({status}).{said} {endpoint.remedies.after_loss}"
        return _perhaps_processed(NetworkFailed(endpoint.say(late.rstrip())))
    if status == 503 and error_words.is_loading(quote):
        loading = endpoint.say(f"the server is loading the model ({status}).{said}")
        return ServerLoading(loading, parse_retry_after(headers))
    if status == 409 or status >= 500:
        overloaded = Overloaded(endpoint.say(f"the provider failed ({status}).{said}"), parse_retry_after(headers))
        return overloaded if status != 501 else _final(overloaded)
    if error_words.FILTER.search(f"{code} {quote}"):
        return ContentRefused(endpoint.say(f"a content filter refused the request ({status}).{said}"))
    if status in (400, 422) and error_words.NO_MODEL.search(f"{code} {quote}"):
        return _not_found(told, endpoint, status)
    if 300 <= status < 400:
        target = plain_url(headers.get("location", "")) or "another address"
        address = endpoint.remedies.check_address
        return RequestRejected(endpoint.say(f"the endpoint redirects to {target} ({status}). Set {address} to it."))
    return RequestRejected(endpoint.say(f"the provider refused the request ({status}).{said}"))


def error_from_payload(payload: bytes, endpoint: Endpoint) -> AdapterError:
    """Convert an error object in a reply with status 200 to our error."""
    body = decode_body(payload)
    told = read_error(body)
    if told.code.isdecimal() and len(told.code) < 9 and 400 <= int(told.code) < 600:
        return error_from_status(int(told.code), body, {}, endpoint)
    error = _of_payload(told, endpoint)
    error.code, error.status = told.code, 200
    return error


def _of_payload(told: ErrorBody, endpoint: Endpoint) -> AdapterError:
    code, quote = told.code, told.sentence
    said = f" The provider says: {_end(told.quote)}" if quote else ""
    if is_overflow(code, quote):
        return ContextOverflow(endpoint.say(f"the request is too long for the model.{said}"), *told.figures)
    if error_words.is_encrypted(code, quote):
        refusal = f"the provider rejected its own signed or encrypted data.{said}"
        return EncryptedRefused(endpoint.say(refusal))
    if code in error_words.KEY_NAMES:
        return AuthenticationFailed(endpoint.say(_key_sentence(0, endpoint)))
    if error_words.NO_CREDIT.search(f"{code} {quote}"):
        return _final(RateLimited(endpoint.say(f"the account has no credit left.{said}")))
    if code in error_words.RATE_NAMES:
        return RateLimited(endpoint.say(f"too many requests.{said}"), error_words.read_wait(quote))
    if code in error_words.OVERLOAD_NAMES or "overloaded" in quote.lower():
        return Overloaded(endpoint.say(f"the provider failed.{said}"))
    if error_words.FILTER.search(f"{code} {quote}"):
        return ContentRefused(endpoint.say(f"a content filter refused the request.{said}"))
    if error_words.NO_MODEL.search(f"{code} {quote}"):
        return _not_found(told, endpoint, 200)
    return RequestRejected(endpoint.say(f"the provider reported an error.{said}"))


def provider_message(payload: bytes, endpoint: Endpoint) -> str:
    """Return the message of an error object, without secrets; a generic message if it has none."""
    return redact(_end(read_error(decode_body(payload)).quote) or "an error without a message.", endpoint.secrets)


def unexpected_content(content_type: str, start: bytes, endpoint: Endpoint) -> AdapterError:
    """Return the error for a reply that is neither an event stream nor JSON, such as the page of a proxy or a login."""
    text = start.decode("utf-8", "replace")
    title = re.search(r"<title[^<>]*>\s*([^<]{1,80})", text, re.IGNORECASE)
    page = f" (a web page titled “{title[1].strip()}”)" if title else ""
    kind = content_type.partition(";")[0].strip() or "no content type"
    where = plain_url(endpoint.base_url)
    check = f"Check {endpoint.remedies.check_address} and the proxy."
    return MalformedReply(endpoint.say(f"{where} answered with {kind}{page} instead of a chat reply. {check}"))


def _key_sentence(status: int, endpoint: Endpoint) -> str:
    code = f" ({status})" if status else ""
    if endpoint.signed_with:
        return f"{endpoint.signed_with} were refused{code}. Log in again, or choose another adapter with ga."
    if not endpoint.key_label:
        return f"the request without a key was refused{code}. {endpoint.remedies.no_key}"
    return f"the key in {endpoint.key_label} was refused{code}. {endpoint.remedies.other_key}"


def _not_found(told: ErrorBody, endpoint: Endpoint, status: int = 404) -> AdapterError:
    if not told.sentence or error_words.NO_MODEL.search(f"{told.code} {told.sentence}"):
        model = f"the model {endpoint.model}" if endpoint.model else "the model"
        tail = "" if told.sentence else f" Or the address is wrong: {plain_url(endpoint.base_url)}."
        number = f" ({status})" if status != 200 else ""
        said = f"the endpoint does not know {model}{number}. {endpoint.remedies.other_model}{tail}"
        return ModelNotFound(endpoint.say(said))
    said = f" The provider says: {_end(told.quote)} Check {endpoint.remedies.check_path}."
    return RequestRejected(endpoint.say(f"nothing found at {plain_url(endpoint.base_url)} (404).{said}"))


def _timed_out(error: BaseException, endpoint: Endpoint) -> AdapterError:
    names = {type(one).__name__ for one in _chain(error)}
    if "ConnectTimeout" in names or any("connect" in str(one).lower() for one in _chain(error)):
        where = plain_url(endpoint.base_url)
        return NetworkFailed(endpoint.say(f"no connection to {where} within {endpoint.connect_timeout_s:g} s."))
    if {"WriteTimeout", "PoolTimeout"} & names and "ReadTimeout" not in names:
        return NetworkFailed(endpoint.say("the request could not be sent in time."))
    silence = "for a long time" if endpoint.silence_s is None else f"for {endpoint.silence_s:g} s"
    said = f"the provider sent nothing {silence} {endpoint.remedies.after_silence} {endpoint.remedies.after_loss}"
    return _perhaps_processed(NetworkFailed(endpoint.say(said.rstrip())))


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from _leaves(one)
        else:
            yield one


def _all_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an error, including those of each address that was tried."""
    last = error
    for last in _chain(error):
        yield last
    if isinstance(last, BaseExceptionGroup):
        for leaf in _leaves(last):
            yield from _chain(leaf)


def _perhaps_processed(error: AdapterError) -> AdapterError:
    """Mark the error to show that the provider may have processed the request, and may bill it."""
    error.perhaps_processed = True
    return error


def _end(quote: str) -> str:
    return quote if not quote or quote.endswith((".", "!", "?", "…")) else quote + "."


def _final(error: AdapterError) -> AdapterError:
    """Mark the error as one that a retry cannot fix."""
    error.retryable = False
    return error


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error followed by its causes, innermost last."""
    chain = [error]
    while (inner := error.__cause__ or error.__context__) is not None and inner not in chain:
        chain.append(error := inner)
    return chain


def _innermost(error: BaseException) -> str:
    """Return the message of the innermost cause, which is more specific than those of its wrappers."""
    *_, error = _all_causes(error)
    if isinstance(error, ConnectionError) and error.errno:
        # Their own message is a call with its arguments.
        return os.strerror(error.errno).lower()
    return quote(str(error)) or type(error).__name__
