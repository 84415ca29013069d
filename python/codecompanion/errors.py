"""Every error a user can meet, as one tree.

    CodeCompanionError
    ├── ConfigError                 a setting is wrong; names the key path and what was expected
    ├── InputError                  a file or line given on the command line is wrong (exit status 2)
    ├── InvalidTransition           our bug: the session was asked for an impossible step
    ├── StoreError
    │   ├── StoreUnavailable        folder or file cannot be written (read-only, disk full, no permission)
    │   ├── StoreCorrupt            the database is damaged
    │   └── LeaseHeld               another Neovim owns the chat
    ├── ToolError                   a tool call failed; the text goes to the model as the result
    │   ├── ToolInputInvalid        the arguments do not fit the schema
    │   └── OutsideWorkspace        a path leaves the workspace
    ├── CompactionFailed            no valid summary; nothing was changed
    └── AdapterError                a provider request failed; `retryable` says whether trying again can help
        ├── NotConfigured           an entry of the configuration cannot be used
        ├── MissingKey              no API key where the configuration says
        ├── AuthenticationFailed    the key was refused
        ├── ModelNotFound           the endpoint does not know the model
        ├── RateLimited             429; `retry_after_s` when the provider said so
        ├── Overloaded              5xx
        │   └── ServerLoading          a local server is loading its model
        ├── ContextOverflow         the provider says the request is too long
        ├── RequestRejected         any other 4xx
        │   └── EncryptedRefused       what the provider had signed or encrypted itself is not accepted back
        ├── NotServed               the server, or the model that it runs, has no such function
        ├── ContentRefused          refused by a content filter
        ├── NetworkFailed           no connection, time-out, TLS, proxy
        ├── MalformedReply          the bytes are not what the wire format says
        └── StreamCut               the connection ended before the reply's end marker; what arrived is kept

`str(error)` is one sentence for the user: what happened and what to do. Keys and headers never occur in it.
"""

from __future__ import annotations


class CodeCompanionError(Exception):
    """Base of every error of ours."""


class ConfigError(CodeCompanionError):
    """A setting is wrong.

    `key` is the full key path (`interactions.chat.adapter`), `expected` what would have been right.
    """

    def __init__(self, key: str, problem: str, expected: str = "") -> None:
        key = "".join(character if character.isprintable() else repr(character)[1:-1] for character in key)
        self.key, self.problem, self.expected = key, problem, expected
        super().__init__(f"{key}: {problem}" + (f"; expected {expected}" if expected else ""))


class InputError(CodeCompanionError):
    """A file, line or argument of the command line is wrong (exit status 2)."""


class InvalidTransition(CodeCompanionError):
    """The session state machine was asked for a step its table does not have."""


class StoreError(CodeCompanionError):
    """The session store could not do what was asked."""


class StoreUnavailable(StoreError):
    """The store's file or folder cannot be written: read-only, full, no permission."""


class StoreCorrupt(StoreError):
    """The database file is damaged."""


class LeaseHeld(StoreError):
    """Another host owns the chat."""


class ToolError(CodeCompanionError):
    """A tool call failed; the message is what the model reads as the result."""


class ToolInputInvalid(ToolError):
    """The arguments of a tool call do not fit its schema."""


class OutsideWorkspace(ToolError):
    """A path leads out of the workspace."""


class CompactionFailed(CodeCompanionError):
    """No valid summary could be made; the history is as it was (R-530)."""


class AdapterError(CodeCompanionError):
    """A provider request failed. `code` is the provider's own word for it, "" when it said none.

    `status` is the HTTP status it came with (200: inside of a reply), 0 when the provider said nothing at all.
    `perhaps_processed`: it may have worked on the request, and bill it; only the user repeats that. `brief`
    says what happened in two or three words, for a line that has no room for a sentence.
    """

    retryable = False
    code = ""
    status = 0
    perhaps_processed = False
    brief = "the request failed"


class NotConfigured(AdapterError):
    """The adapter's entry in the configuration cannot be used; no request was made."""


class MissingKey(AdapterError):
    """There is no API key where the configuration says."""


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
    """The provider says the request is longer than the context window (R-535).

    `prompt_tokens` and `limit_tokens` are the figures it gave, 0 when it gave none.
    """

    def __init__(self, message: str, prompt_tokens: int = 0, limit_tokens: int = 0) -> None:
        self.prompt_tokens, self.limit_tokens = prompt_tokens, limit_tokens
        super().__init__(message)


class RequestRejected(AdapterError):
    """The provider refused the request for another reason."""


class EncryptedRefused(RequestRejected):
    """The provider does not accept back what it had signed or encrypted itself (another account, an expired key)."""


class NotServed(AdapterError):
    """The server, or the model that it runs, has no such function: filling in, embeddings; asking again is no use."""


class ContentRefused(AdapterError):
    """A content filter refused the request or the reply."""


class NetworkFailed(AdapterError):
    """The endpoint could not be reached, or did not answer in time. `nobody_listens`: the connection was refused."""

    retryable = True
    nobody_listens = False
    brief = "no connection"


class MalformedReply(AdapterError):
    """The reply is not what the wire format says."""


class StreamCut(AdapterError):
    """The connection ended before the reply, or before its end marker (lesson 39).

    What arrived is kept by the caller.
    """

    retryable = True
    perhaps_processed = True
    brief = "the connection broke"
