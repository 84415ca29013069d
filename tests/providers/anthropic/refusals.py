"""Errors of the fake Messages server, with the provider's statuses, types and body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Refusal:
    """An error answer. `code` becomes `error.details.error_code`, by which the SDK chooses its exception."""

    status: int
    message: str
    code: str | None = None

    @property
    def type(self) -> str:
        """Return the error type of the status."""
        return TYPES[self.status]

    def body(self, request_id: str) -> dict[str, Any]:
        """Return the JSON body."""
        error: dict[str, Any] = {"type": self.type, "message": self.message}
        if self.code:
            error["details"] = {"error_code": self.code}
        return {"type": "error", "error": error, "request_id": request_id}


class Refused(Exception):
    """Raised by the rules for the first breach they find."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refuse(message: str, code: str | None = None, status: int = 400) -> NoReturn:
    """Refuse the request."""
    raise Refused(Refusal(status, message, code))
