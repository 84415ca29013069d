"""Answers a server's requests for a model reply or user input while one of its tools runs; the user always decides.

Both requests appear as blocks in the chat whose call is running. A reply comes from the chat's own adapter and model,
and its cost is charged to the chat; neither request nor reply is added to the history.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from codecompanion.adapters.base import ChatRequest, Finished, TextDelta
from codecompanion.errors import AdapterError
from codecompanion.formats.cutting import cut
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.mcp.server_types import ElicitationRequest, Refused, SamplingReply, SamplingRequest, Unaskable
from codecompanion.model.messages import Message
from codecompanion.session.chat.chat import Chat
from codecompanion.session.services import Services
from codecompanion.wire.events import ApprovalRequested, Severity
from codecompanion.wire.requests import Approve
from codecompanion.workspace.secret_values import names_secret

MAX_SAMPLE_TOKENS = 4_096
MAX_SAMPLE_CHARS = 200_000
SAMPLE_S = 300.0
MAX_FIELDS = 30
"""Maximum number of fields in a form, because the user fills them in one at a time."""
MAX_FORM_CHARS = 20_000
"""Maximum length of a form in characters, because it is shown in full; a list of all countries takes 3,000."""
_KINDS = ("string", "integer", "number", "boolean", "array")
_REFUSED = "the user declined"


async def sample(services: Services, chat: Chat | None, server: str, request: SamplingRequest) -> SamplingReply:
    """Return a reply from the chat's model once the user has agreed.

    Raises:
        Refused: the user declined, or the model could not be asked.
    """
    if chat is None:
        raise Refused("no chat is waiting for this server")
    if sum(len(text) for _, text in request.messages) + len(request.system) > MAX_SAMPLE_CHARS:
        raise Refused(f"it sends more than {MAX_SAMPLE_CHARS:,} characters")
    most = max(1, min(request.max_tokens or MAX_SAMPLE_TOKENS, MAX_SAMPLE_TOKENS))
    more = f" (it asks for {request.max_tokens:,})" if request.max_tokens > most else ""
    parts = [f"[system]\n{request.system}"] if request.system else []
    parts += [f"[{role}]\n{text}" for role, text in request.messages]
    given = await chat.desk.ask_aside(
        ApprovalRequested(
            chat=chat.chat_id,
            call_id=f"mcp-{services.new_token()}",
            name=server,
            title=f"let {chat.model or chat.adapter_name} answer this, in up to {most:,} tokens{more}?",
            body="\n\n".join(parts),
            kind="sampling",
        )
    )
    if given.decision not in ("once", "always"):
        raise Refused(_REFUSED)
    return await _reply(services, chat, request, most)


async def _reply(services: Services, chat: Chat, request: SamplingRequest, most: int) -> SamplingReply:
    def message(role: Any, text: str) -> Message:
        return Message(id=services.new_token(), role=role, content=text)

    system = [message("system", request.system)] if request.system else []
    adapter, model, name = chat.control.adapter(), chat.model, chat.adapter_name
    asked = ChatRequest(
        messages=(*system, *(message(role, text) for role, text in request.messages)),
        model=model,
        max_output_tokens=most,
        purpose="summary",
    )
    texts: list[str] = []
    finished: Finished | None = None
    try:
        async with asyncio.timeout(SAMPLE_S):
            async for event in adapter.stream(asked):
                if isinstance(event, TextDelta):
                    texts.append(event.text)
                elif isinstance(event, Finished):
                    finished = event
    except (AdapterError, TimeoutError) as error:
        chat.notice(Severity.WARN, f"The MCP server got no reply: {str(error) or 'the model did not answer in time.'}")
        raise Refused("the model could not be asked") from error
    if finished is not None and finished.usage is not None:
        about = asked.messages[-1].id
        reported = services.passes_reported(name, model, about, [finished.usage])
        await chat.log.write(msgspec.structs.replace(reported, purpose="sampling"))
    return SamplingReply(
        text="".join(texts), model=model or name, was_cut=finished is None or finished.stop == "length"
    )


async def elicit(chat: Chat | None, server: str, request: ElicitationRequest) -> dict[str, Any] | None:
    """Return the values that the user entered, or None if the question was closed without an answer.

    Raises:
        Refused: the user declined.
        Unaskable: the form cannot be shown completely; the user is notified too.
    """
    if chat is None:
        raise Refused("no chat is waiting for this server")
    if why := _unaskable(request):
        chat.notice(Severity.WARN, f"The MCP server {server} asked for values and was refused: {why}.")
        raise Unaskable(why)
    fields: Mapping[str, Mapping[str, Any]] = request.fields
    problem, typed = "", dict[str, str]()
    while True:
        given = await chat.desk.ask_aside(_question(chat, server, request, fields, problem, typed))
        if given.decision == "cancel":
            return None
        if given.decision == "reject":
            raise Refused(_REFUSED)
        if request.url:
            return {}
        typed = _typed(given)
        chat.services.known_secrets.learn(typed.get(name, "") for name in fields if _is_secret(name, fields[name]))
        values, problem = _values(typed, fields, request.required)
        if not problem:
            return values


def _unaskable(request: ElicitationRequest) -> str:
    """Return why the form cannot be shown completely, or "" if it can."""
    if len(request.fields) > MAX_FIELDS:
        return f"its form has {len(request.fields)} fields; the limit is {MAX_FIELDS}"
    for name, field in request.fields.items():
        if not isinstance(field, Mapping):
            return f"the field {cut(_one_line(name), 60)} of its form has no schema"
        if field.get("type", "string") not in _KINDS:
            kind, kinds = cut(_one_line(field["type"]), 40), ", ".join(_KINDS)
            return f"the field {cut(_one_line(name), 60)} of its form has the type {kind}; expected one of {kinds}"
    about = (f"{name}{field.get('description', '')}{_default(field)}" for name, field in request.fields.items())
    shown = (request.message, request.url, *about, *(text for one in request.fields.values() for text in _options(one)))
    chars = sum(map(len, shown))
    return f"it has {chars:,} characters; the limit is {MAX_FORM_CHARS:,}" if chars > MAX_FORM_CHARS else ""


def _question(
    chat: Chat,
    server: str,
    request: ElicitationRequest,
    fields: Mapping[str, Mapping[str, Any]],
    problem: str,
    typed: Mapping[str, str],
) -> ApprovalRequested:
    """Return the approval block that asks for the values, with earlier input (`typed`) in its fields."""
    lines = [request.message]
    if request.url:
        lines += ["", f"It asks you to open this address yourself: {request.url}"]
    lines += [""] if fields else []
    for name, field in fields.items():
        lines += _about(name, field, name in request.required)
    lines += ["", problem] if problem else []
    form = [
        {
            "name": name,
            "label": _label(name, field),
            "default": "" if _is_secret(name, field) else typed.get(name, _default(field)),
            "choices": _choices(field),
            "required": name in request.required,
            "secret": _is_secret(name, field),
        }
        for name, field in fields.items()
    ]
    return ApprovalRequested(
        chat=chat.chat_id,
        call_id=f"mcp-{chat.services.new_token()}",
        name=server,
        title="asks you to enter values" if not request.url else "asks you to open an address",
        body="\n".join(lines),
        kind="elicitation",
        form=json.dumps(form) if form else "",
    )


def _is_secret(name: str, field: Mapping[str, Any]) -> bool:
    """Return whether a value is masked and never stored: a password according to its schema, name or title."""
    if field.get("format") == "password" or field.get("writeOnly") is True:
        return True
    if field.get("type", "string") != "string" or _choices(field):
        return False
    return names_secret(name) or names_secret(_one_line(field.get("title") or ""))


def _label(name: str, field: Mapping[str, Any]) -> str:
    """Return the label of a field, used wherever it is shown: its title, or its name if it has none."""
    return cut(_one_line(field.get("title") or name), 60)


def _about(name: str, field: Mapping[str, Any], required: bool) -> list[str]:
    about = _one_line(field.get("description") or "")
    wanted = "required" if required else "optional"
    line = f"- {_label(name, field)} ({field.get('type', 'string')}, {wanted}) {about}".rstrip()
    options = [f"{value} = {title}" if title else value for value, title in _titled(field)]
    return [line, *([f"  one of: {', '.join(options)}"] if options else [])]


def _choices(field: Mapping[str, Any]) -> list[str]:
    """Return the choices of a field."""
    return [value for value, _ in _titled(field)]


def _options(field: Mapping[str, Any]) -> list[str]:
    return [f"{value}{title}" for value, title in _titled(field)]


def _titled(field: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the choices of a field with their titles, in every format that versions of the specification have used."""
    if field.get("type") == "array":
        inner = field.get("items")
        return _titled(inner) if isinstance(inner, Mapping) else []
    if field.get("type") == "boolean":
        return [("true", ""), ("false", "")]
    for keyword in ("oneOf", "anyOf"):
        options = field.get(keyword)
        if isinstance(options, list):
            given = [one for one in options if isinstance(one, Mapping) and "const" in one]
            return [(_one_line(one["const"]), _one_line(one.get("title") or "")) for one in given]
    options, names = field.get("enum"), field.get("enumNames")
    if not isinstance(options, list):
        return []
    titles = names if isinstance(names, list) and len(names) == len(options) else [""] * len(options)
    return [(_one_line(one), _one_line(title)) for one, title in zip(options, titles, strict=True)]


def _one_line(value: Any) -> str:
    return " ".join(str(value).split())


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _typed(given: Approve) -> dict[str, str]:
    """Return the text entered in each field, by field name."""
    try:
        typed = json.loads(given.text or "{}")
    except NOT_READABLE:
        return {}
    return {name: str(text) for name, text in typed.items()} if isinstance(typed, dict) else {}


def _values(
    typed: Mapping[str, str], fields: Mapping[str, Mapping[str, Any]], required: tuple[str, ...]
) -> tuple[dict[str, Any], str]:
    """Return the values converted to the types of their fields, and the problem with the first invalid value, or ""."""
    values: dict[str, Any] = {}
    for name, field in fields.items():
        text = typed.get(name, "").strip()
        if not text:
            if name in required:
                return {}, f"{_label(name, field)} is required."
            continue
        try:
            values[name] = _value(text, field)
        except ValueError as error:
            return {}, f"{_label(name, field)}: {error}."
    return values, ""


def _value(text: str, field: Mapping[str, Any]) -> Any:
    choices = _choices(field)
    match field.get("type"):
        case "boolean":
            if text.lower() not in ("true", "false", "yes", "no"):
                raise ValueError("expected true or false")
            return text.lower() in ("true", "yes")
        case "integer" | "number" as kind:
            try:
                number = int(text) if kind == "integer" else float(text)
            except ValueError:
                raise ValueError("expected a whole number" if kind == "integer" else "expected a number") from None
            if not math.isfinite(number):
                raise ValueError("expected a number")
            low, high = field.get("minimum"), field.get("maximum")
            if (isinstance(low, (int, float)) and number < low) or (isinstance(high, (int, float)) and number > high):
                raise ValueError(f"expected a number from {low} to {high}")
            return number
        case "array":
            chosen = [one.strip() for one in text.split(",") if one.strip()]
            for one in chosen:
                if choices and one not in choices:
                    raise ValueError(_expected("some", one, choices))
            return chosen
    if choices and text not in choices:
        raise ValueError(_expected("one", text, choices))
    return text


def _expected(how_many: str, given: str, choices: list[str]) -> str:
    near = get_close_matches(given, choices, n=1)
    return f"expected {how_many} of {cut(', '.join(choices), 200)}{f'; the nearest is {near[0]}' if near else ''}"
