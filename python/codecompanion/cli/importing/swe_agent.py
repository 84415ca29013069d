"""`import --from swe-agent`: a trajectory of SWE-agent (`.traj`) or mini-swe-agent (`.traj.json`).

For SWE-agent, the `history` (the messages sent to the model) is preferred to the `trajectory` (the thought, action and
observation of each step). An action given as text becomes a call of `bash` and the observation becomes its result, so
that context editing has something to clear. Demonstrations are left out because they are not part of the run.
"""

from __future__ import annotations

from typing import Any

from codecompanion.cli.importing import fields
from codecompanion.cli.importing.openai_api import read_content, read_messages
from codecompanion.errors import InputError
from codecompanion.formats.json_words import wrong_field

EXPECTED = 'a trajectory, {"history": […]}, {"trajectory": […]} or {"messages": […]}'


def read(raw: bytes, source: str, skipped: fields.Skipped = None) -> list[dict[str, Any]]:
    """Return the conversation of a trajectory.

    Raises:
        InputError: the file is not a trajectory; the message names the file and line.
    """
    found = fields.read_values(raw, source, EXPECTED, skipped)
    whole = fields.expect_object(found[0].value, found[0].where, EXPECTED)
    for name, reader in (("history", _read_history), ("trajectory", _read_steps), ("messages", _read_mini)):
        if whole.get(name):
            where = f"{found[0].where}: {name}"
            return reader(list(fields.numbered(fields.expect_list(whole[name], where, "a list"), where)))
    raise InputError(f"{found[0].where}: it has no history, trajectory or messages; expected {EXPECTED}")


def _read_history(items: list[fields.Found]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    asked = ""
    for number, item in enumerate(items):
        entry = fields.expect_object(item.value, item.where, "a message object")
        if entry.get("is_demo"):
            continue
        role = entry.get("role")
        content = read_content(entry.get("content"), item.where)
        if role == "assistant":
            message, asked = _read_reply(entry, content, item.where, f"call_{number}")
            messages.append(message)
        elif role == "tool" or (asked and role == "user"):
            ids = entry.get("tool_call_ids") or [entry.get("tool_call_id") or asked]
            call_id = fields.expect_text(
                fields.expect_list(ids, item.where, "a list of ids")[0], item.where, "tool_call_ids[0]"
            )
            messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
            asked = ""
        elif role in ("system", "user"):
            messages.append({"role": role, "content": content})
        else:
            raise InputError(f"{item.where}: {wrong_field('role', role, 'system, user, assistant or tool')}")
    return messages


def _read_reply(entry: dict[str, Any], content: Any, where: str, call_id: str) -> tuple[dict[str, Any], str]:
    """Return a reply, and the call id of an action given as text, or "" if the reply has tool calls or no action."""
    if entry.get("tool_calls"):
        return read_messages([fields.Found({**entry, "content": content}, where)])[0], ""
    action = entry.get("action")
    if not isinstance(action, str) or not action.strip():
        return {"role": "assistant", "content": content}, ""
    thought = entry.get("thought")
    call = fields.make_call(call_id, "bash", {"command": action.strip()})
    return {"role": "assistant", "content": thought if isinstance(thought, str) else content, "tool_calls": [call]}, (
        call_id
    )


def _read_steps(items: list[fields.Found]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        step = fields.expect_object(item.value, item.where, "a step object")
        reply, asked = _read_reply({**step, "role": "assistant"}, step.get("response") or "", item.where,
                                   f"call_{number}")  # fmt: skip
        messages.append(reply)
        if asked:
            observation = fields.expect_text(step.get("observation") or "", item.where, "observation")
            messages.append({"role": "tool", "tool_call_id": asked, "content": observation})
    return messages


def _read_mini(items: list[fields.Found]) -> list[dict[str, Any]]:
    """Return the messages of mini-swe-agent: Chat messages with a time in `timestamp` or `extra`."""
    made = read_messages([fields.Found(_plain(item), item.where) for item in items])
    times = [item.value.get("timestamp") or (item.value.get("extra") or {}).get("timestamp") for item in items]
    return [fields.with_meta(message, ts=fields.seconds(time)) for message, time in zip(made, times, strict=True)]


def _plain(item: fields.Found) -> dict[str, Any]:
    """Return the message with the role `exit`, which only mini-swe-agent uses, replaced by `user`."""
    entry = fields.expect_object(item.value, item.where, "a message object")
    return {**entry, "role": "user"} if entry.get("role") == "exit" else entry
