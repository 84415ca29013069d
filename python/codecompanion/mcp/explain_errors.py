"""Converts all exceptions of the SDK and its transports into a sentence about the server."""

from __future__ import annotations

from codecompanion.mcp.server_types import McpError

_MAX_CHARS = 300


def explain(error: BaseException) -> str:
    """Return the error as a sentence without a full stop and without the server's name."""
    if isinstance(error, McpError):
        return str(error)
    if isinstance(error, BaseExceptionGroup):
        return explain(error.exceptions[0])
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    name = type(error).__name__
    if name in ("ClosedResourceError", "BrokenResourceError", "EndOfStream", "ConnectionResetError", "BrokenPipeError"):
        return "it closed the connection"
    if name in ("ConnectError", "ConnectTimeout"):
        return "it cannot be reached: nothing answers at its address"
    if name == "ValidationError":
        return f"its answer violates the protocol: {_first_fault(error)}"
    code = getattr(error, "code", None)
    text = _one_line(str(error))
    if code == -32000 or text == "Connection closed":
        return "it closed the connection"
    if code == -32001:
        return "it did not answer in time"
    return text or name


def is_gone(error: BaseException) -> bool:
    """Return whether the connection has ended, so that a new one is needed."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_gone, error.exceptions))
    gone = ("ClosedResourceError", "BrokenResourceError", "ConnectError", "ConnectTimeout", "ReadError", "EndOfStream")
    code = getattr(error, "code", None)
    return type(error).__name__ in gone or code == -32000 or "session terminated" in str(error).lower()


def _first_fault(error: BaseException) -> str:
    errors = getattr(error, "errors", None)
    if callable(errors):
        for one in errors(include_url=False, include_input=False):
            where = ".".join(map(str, one.get("loc", ())))
            return _one_line(f"{where}: {one.get('msg', '')}")
    return ""


def _one_line(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _MAX_CHARS else line[: _MAX_CHARS - 1] + "…"
