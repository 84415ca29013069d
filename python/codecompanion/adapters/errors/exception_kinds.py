"""Maps the transport's exception classes, by name, to the outcome of the request.

The names are from httpx2, anyio, ssl, the standard library and our own exchanges. Base classes are matched too, so that
nothing has to be imported. A test checks that no class of httpx2 is missing.
"""

from __future__ import annotations

from typing import Literal

ExceptionKind = Literal[
    "status",
    "unreachable",
    "timed out",
    "cut",
    "lost",
    "malformed",
    "not sent",
    "not installed",
    "no sdk",
    "no credentials",
    "no token",
]

_NAMES: dict[ExceptionKind, tuple[str, ...]] = {
    "status": ("HTTPStatusError",),
    "unreachable": (
        *("NotDelivered", "ConnectError", "NetworkError", "TransportError", "ProxyError", "UnsupportedProtocol"),
        *("RequestError", "HTTPError", "WriteError", "CloseError", "SSLError", "OSError", "TooManyRedirects"),
        *("EndOfStream", "BrokenResourceError", "ClosedResourceError"),
        *("WebSocketConnectionClosedError", "WebSocketQueueFullError"),
    ),
    "timed out": ("TimeoutException", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout", "TimeoutError"),
    "cut": ("ReadError", "RemoteProtocolError", "ProtocolError", "StreamError", "StreamClosed"),
    "lost": ("AnswerLost",),
    "malformed": (
        *("DecodingError", "ResponseNotRead", "RequestNotRead", "StreamConsumed", "LocalProtocolError"),
        *("CookieConflict", "SSEError", "LimitHit", "Unreadable"),
    ),
    "not sent": ("InvalidURL",),
    "not installed": ("ImportError",),
    "no sdk": ("NotInstalled",),
    "no credentials": ("NoCredentials",),
    "no token": ("CredentialsUnreachable",),
}
EXCEPTION_KINDS: dict[str, ExceptionKind] = {name: kind for kind, names in _NAMES.items() for name in names}


def kind_of(error: BaseException) -> ExceptionKind | None:
    """Return the request outcome listed for the exception's nearest base class, or None if none is listed."""
    return next(
        (EXCEPTION_KINDS[base.__name__] for base in type(error).__mro__ if base.__name__ in EXCEPTION_KINDS), None
    )
