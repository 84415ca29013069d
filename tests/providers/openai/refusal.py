"""Error answers of OpenAI's endpoints: an error as a value, and the problems of the SDK's types in OpenAI's wording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tests.providers.loopback.wire_schemas import Kind, schema_problems


@dataclass(frozen=True)
class Refusal:
    """An error answer: status and the fields of `error`."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    type: str = "invalid_request_error"

    def body(self) -> dict[str, Any]:
        """Return the JSON body OpenAI would send."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class Refused(Exception):
    """Raised when a check has failed and the request gets this refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refuse(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> NoReturn:
    """Stop checking and answer with this refusal."""
    raise Refused(Refusal(status, message, code, param))


def expect(value: Any, kind: type | tuple[type, ...], param: str) -> None:
    """Refuse a value of another type; a bool is not an int."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        refuse(f"Invalid type for '{param}': got {type(value).__name__} instead.", param, "invalid_type")


def expect_length(value: str, longest: int, param: str) -> None:
    """Refuse a text that is too long."""
    if len(value) > longest:
        text = f"Expected a string with maximum length {longest}, but got a string with length {len(value)} instead."
        refuse(f"Invalid '{param}': string too long. {text}", param, "string_above_max_length")


def check_schema(kind: Kind, body: Mapping[str, Any]) -> None:
    """Refuse a body that does not match the SDK's request type: unknown keys, missing keys, wrong types."""
    for problem in schema_problems(kind, body, limit=1):
        path, _, text = problem.partition(": ")
        param = _as_openai_writes(path.split("."), body)
        if text.startswith("Extra inputs"):
            refuse(f"Unknown parameter: '{param}'.", param, "unknown_parameter")
        if text.startswith("Field required"):
            refuse(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")
        what = "type" if text.startswith("Input should be a valid") else "value"
        refuse(f"Invalid {what} for '{param}': {text}.", param, f"invalid_{what}")


def _as_openai_writes(steps: list[str], body: Any) -> str:
    """Return a path in the form `input[0].content[1].text`, without the names of union choices on the way."""
    path, at, may_choose = "", body, False
    for count, step in enumerate(steps):
        if isinstance(at, list) and step.isdigit():
            path += f"[{step}]"
            at, may_choose = at[int(step)], True
            continue
        is_last = count == len(steps) - 1
        if may_choose and not is_last and isinstance(at, Mapping) and _is_choice(step, at):
            may_choose = False
            continue
        path += f".{step}" if path else step
        at, may_choose = (at.get(step) if isinstance(at, Mapping) else None), False
    return path


def _is_choice(step: str, at: Mapping[str, Any]) -> bool:
    """Return whether the step names the kind of this object: its `type`, or the kind that applies if it has none."""
    return step == at["type"] if "type" in at else step not in at
