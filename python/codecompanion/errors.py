"""Defines every error a user can see, as one tree.

    CodeCompanionError
    ├── ConfigError                 a setting is invalid; names the key path and the expected value
    ├── InputError                  a file or line given on the command line is invalid (exit status 2)
    ├── InvalidTransition           our bug: the session received an invalid step
    ├── StoreError
    │   ├── StoreUnavailable        folder or file cannot be written (read-only, disk full, no permission)
    │   ├── StoreCorrupt            the database is damaged
    │   └── LeaseHeld               another Neovim owns the chat
    ├── ToolError                   a tool call failed; the text goes to the model as the result
    │   ├── ToolInputInvalid        the arguments do not match the schema
    │   └── OutsideWorkspace        a path leaves the workspace
    ├── CompactionFailed            no valid summary; nothing was changed
    └── AdapterError                a provider request failed; `retryable`: trying again can help
        ├── NotConfigured           an entry of the configuration cannot be used
        ├── MissingKey              no API key in the configured place
        ├── AuthenticationFailed    the key was refused
        ├── ModelNotFound           the endpoint does not know the model
        ├── RateLimited             429; with `retry_after_s` if the provider sent it
        ├── Overloaded              5xx
        │   └── ServerLoading          a local server is loading its model
        ├── ContextOverflow         the request is too long for the provider
        ├── RequestRejected         any other 4xx
        │   └── EncryptedRefused       the provider rejects state that it signed or encrypted itself
        ├── NotServed               the server, or the model that it runs, has no such function
        ├── ContentRefused          refused by a content filter
        ├── NetworkFailed           no connection, time-out, TLS, proxy
        ├── MalformedReply          the bytes do not follow the wire format
        └── StreamCut               the connection ended before the reply's end marker; the received part is kept

`str(error)` is one sentence for the user: the problem and the remedy. Keys and headers never occur in it.
"""

from __future__ import annotations


class CodeCompanionError(Exception):
    """Base of all our errors."""


class ConfigError(CodeCompanionError):
    """A setting is invalid.

    `key` is the full key path (`interactions.chat.adapter`), `expected` a valid value.
    """

    def __init__(self, key: str, problem: str, expected: str = "") -> None:
        key = "".join(character if character.isprintable() else repr(character)[1:-1] for character in key)
        self.key, self.problem, self.expected = key, problem, expected
        super().__init__(f"{key}: {problem}" + (f"; expected {expected}" if expected else ""))


class InputError(CodeCompanionError):
    """A file, line or argument of the command line is invalid (exit status 2)."""


class Busy(InputError):
    """The request has to wait for the end of the running reply."""


class InvalidTransition(CodeCompanionError):
    """The session state machine received a step that its table does not have."""


class StoreError(CodeCompanionError):
    """The session store could not perform an operation."""


class StoreUnavailable(StoreError):
    """The store's file or folder cannot be written: read-only, full, no permission."""


class StoreCorrupt(StoreError):
    """The database file is damaged."""


class LeaseHeld(StoreError):
    """Another host owns the chat."""


class ToolError(CodeCompanionError):
    """A tool call failed; the model reads the message as the result."""


class ToolInputInvalid(ToolError):
    """The arguments of a tool call do not match its schema."""


class OutsideWorkspace(ToolError):
    """A path leads out of the workspace."""


class CompactionFailed(CodeCompanionError):
    """No valid summary could be made; the history is unchanged (R-530)."""


class AdapterError(CodeCompanionError):
    """A provider request failed. `code` is the provider's error code, or "" when it sent none.

    `status` is the HTTP status of the error (200: inside a reply), or 0 without a response. `perhaps_processed`: the
    provider may have processed and billed the request; only the user may repeat it. `brief` describes the error in two
    or three words, for a line too short for a sentence.
    """

    retryable = False
    code = ""
    status = 0
    perhaps_processed = False
    brief = "the request failed"


class NotConfigured(AdapterError):
    """The adapter's entry in the configuration cannot be used; no request was made."""


class MissingKey(AdapterError):
    """There is no API key in the configured place."""


class AuthenticationFailed(AdapterError):
    """The provider refused the key."""


class ModelNotFound(AdapterError):
    """The endpoint does not know the model."""


class RateLimited(AdapterError):
    """The provider answered 429."""

    retryable = True
    brief = "too many requests"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class Overloaded(AdapterError):
    """The provider answered 5xx."""

    retryable = True
    brief = "the provider is overloaded"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class ServerLoading(Overloaded):
    """The server answered 503 because it is loading its model."""

    brief = "loading the model"


class ContextOverflow(AdapterError):
    """The request is longer than the context window, according to the provider (R-535).

    `prompt_tokens` and `limit_tokens` are the provider's figures, or 0 when it sent none.
    """

    def __init__(self, message: str, prompt_tokens: int = 0, limit_tokens: int = 0) -> None:
        self.prompt_tokens, self.limit_tokens = prompt_tokens, limit_tokens
        super().__init__(message)


class RequestRejected(AdapterError):
    """The provider refused the request for another reason."""


class EncryptedRefused(RequestRejected):
    """The provider rejects state that it signed or encrypted itself (another account, an expired key)."""


class NotServed(AdapterError):
    """The server or its model does not support the operation (infilling, embeddings); retrying does not help."""


class ContentRefused(AdapterError):
    """A content filter refused the request or the reply."""


class NetworkFailed(AdapterError):
    """The endpoint could not be reached, or did not answer in time. `nobody_listens`: the connection was refused."""

    retryable = True
    nobody_listens = False
    brief = "no connection"


class MalformedReply(AdapterError):
    """The reply does not follow the wire format."""


class StreamCut(AdapterError):
    """The connection ended before the reply began, or before its end marker (lesson 39).

    The caller keeps the received part.
    """

    retryable = True
    perhaps_processed = True
    brief = "the connection was lost"
