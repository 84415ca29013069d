"""Every exception class of the SDK and its transport, by name: what became of the request.

Names of openai, anthropic, httpx2, anyio, ssl and the standard library; matched along the bases of a class, so that
nothing has to be imported. A test proves that no class of the SDKs or of httpx2 is missing.
"""

from __future__ import annotations

from typing import Literal

ExceptionKind = Literal[
    "status", "unreachable", "timed out", "cut", "malformed", "not sent", "not installed", "reported"
]

_NAMES: dict[ExceptionKind, tuple[str, ...]] = {
    "status": (
        "APIStatusError",
        "BadRequestError",
        "AuthenticationError",
        "OAuthError",
        "PermissionDeniedError",
        "NotFoundError",
        "ConflictError",
        "UnprocessableEntityError",
        "RateLimitError",
        "InternalServerError",
        "HTTPStatusError",
        # anthropic: one class for each status, and under them one for each error code.
        "PaymentRequiredError",
        "RequestTimeoutError",
        "PreconditionFailedError",
        "ContentTooLargeError",
        "RequestHeaderFieldsTooLargeError",
        "ClientClosedRequestError",
        "HTTPNotImplementedError",
        "ServiceUnavailableError",
        "GatewayTimeoutError",
        "OverloadedError",
    ),
    "unreachable": (
        "APIConnectionError",
        "ConnectError",
        "NetworkError",
        "TransportError",
        "ProxyError",
        "UnsupportedProtocol",
        "RequestError",
        "HTTPError",
        "WriteError",
        "CloseError",
        "SSLError",
        "EndOfStream",
        "BrokenResourceError",
        "ClosedResourceError",
        "OSError",
        "WebSocketConnectionClosedError",
        "WebSocketQueueFullError",
        "TooManyRedirects",
    ),
    "timed out": (
        "APITimeoutError",
        "TimeoutException",
        "ConnectTimeout",
        "ReadTimeout",
        "WriteTimeout",
        "PoolTimeout",
        "TimeoutError",
    ),
    "cut": ("ReadError", "RemoteProtocolError", "ProtocolError", "StreamError", "StreamClosed"),
    "malformed": (
        "APIResponseValidationError",
        "APIWebhookValidationError",
        "DecodingError",
        "LengthFinishReasonError",
        "ContentFilterFinishReasonError",
        "InvalidWebhookSignatureError",
        "ResponseNotRead",
        "RequestNotRead",
        "StreamConsumed",
        "LocalProtocolError",
        "CookieConflict",
        "StreamAlreadyConsumed",
        "SSEError",
    ),
    "not sent": (
        "OpenAIError",
        "AnthropicError",
        "RetryableError",
        "CredentialsError",
        "IdentityTokenFileError",
        "WorkloadIdentityError",
        "ToolsetUsageError",
        "ToolsetConfigError",
        "ToolsetContractError",
        "ToolsetsFixedError",
        "ToolsetClosedError",
        "SubjectTokenProviderError",
        "MutuallyExclusiveAuthError",
        "APIRemovedInV1",
        "_AmbiguousModuleClientUsageError",
        "InvalidURL",
    ),
    "not installed": ("ImportError", "MissingDependencyError"),
    "reported": ("APIError",),
}
EXCEPTION_KINDS: dict[str, ExceptionKind] = {name: kind for kind, names in _NAMES.items() for name in names}


def kind_of(error: BaseException) -> ExceptionKind | None:
    """Return what became of the request, by the nearest base class that has a row; None for a foreign exception."""
    return next(
        (EXCEPTION_KINDS[base.__name__] for base in type(error).__mro__ if base.__name__ in EXCEPTION_KINDS), None
    )
