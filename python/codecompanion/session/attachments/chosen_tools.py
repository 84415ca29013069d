"""Tools and groups chosen in a chat: named in a message (`@{files}`), switched in the list, or removed.

Each choice is a single log event that contains the complete selection after it, so it can be undone, and survives
resuming and branching. A message that names a group is sent as typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import ViewChanged
from codecompanion.session.toolbox.tool_groups import (
    NO_UNITS,
    Group,
    chosen_names,
    nearest_name,
    other_meanings,
    unit_of,
    units_of,
    with_units,
    without_tool,
)
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.tools.tool import Tool
from codecompanion.tools.tool_provider import NOT_STARTED, ProvidedGroup
from codecompanion.wire.events import ContextItem

HELD_BACK = "held back in a small window"
ITEM = "tools:"
"""The prefix of the ids of tool lines in the context block."""
_NAMED = regex(r"(?<![\w@`{])@\{([\w:.-]{1,80})\}", re.ASCII)


def named_in(text: str) -> tuple[str, ...]:
    """Return the tools and groups that a message names, each once; names in code are ignored."""
    if "@{" not in text:
        return ()
    from codecompanion.retrieval.mentions import prose_of

    return tuple(dict.fromkeys(_NAMED.findall(prose_of(text))))


class Choice(msgspec.Struct, frozen=True):
    """The tools chosen by a message: the change, if any; why the message cannot be sent; notes for the user."""

    change: ViewChanged | None = None
    why_not: str = ""
    said: tuple[str, ...] = ()
    lacks: str = ""
    """The package extra that must be installed first."""


def chosen_by(text: str, model: ChatModel, change_id: str) -> Choice:
    """Return the tools that a message chooses.

    An unknown name is an error: if it were ignored, the message would be sent with other tools than intended.
    """
    names = named_in(text)
    if not names:
        return Choice()
    groups, tools = model.tools.groups(model.tools.all()), model.tools.names(names)
    units, unknown = units_of(names, groups, tools)
    if unknown:
        near = nearest_name(unknown[0], groups, tools)
        advice = f"did you mean @{{{near}}}?" if near else "/tools lists them; in backticks it is plain text."
        return Choice(why_not=f"There is no tool or group named {', '.join(unknown)}; {advice}")
    if without := _without_tools(units, groups):
        return Choice(why_not=f"{without.why_not}.", lacks=without.lacks)
    before = model.log.tools or model.tools.default_units
    after = with_units(before, units)
    if not units or after == before:
        return Choice()
    return Choice(_changed(change_id, after, tuple(names)), said=tuple(other_meanings(names, groups, tools)))


def _without_tools(units: Iterable[str], groups: Mapping[str, Group]) -> ProvidedGroup | None:
    """Return the first chosen group, or group of a chosen tool, that has no tools until the user acts.

    None if there is none.
    """
    without = [one.provided for one in groups.values() if one.provided is not None and one.provided.why_not]
    for unit in units if without else ():
        kind, _, name = unit.partition(":")
        for group in without:
            if group.name == name if kind == "group" else group.brings(name):
                return group
    return None


def toggled(model: ChatModel, names: Sequence[str], on: bool | None, change_id: str) -> ViewChanged | None:
    """Return the change that switches tools or groups on or off (None = toggle), or None if nothing changes.

    Raises:
        InputError: the tool or group does not exist.
    """
    groups, tools = model.tools.groups(model.tools.all()), model.tools.names(names)
    units, always = model.tools.starting_units, model.tools.always
    for name in names:
        unit = unit_of(name, groups, tools)
        if not unit:
            near = nearest_name(name, groups, tools)
            advice = f"; did you mean {near}?" if near else "; /tools lists them."
            raise InputError(f"There is no tool or group named {name}{advice}")
        is_group = unit.startswith("group:")
        is_on = unit in units if is_group else name in chosen_names(units, groups, tools, always)
        wanted = not is_on if on is None else on
        if wanted == is_on:
            continue
        if wanted and (why := _without_tools([unit], groups)):
            raise InputError(_sentence(why))
        if not wanted:
            left = tuple(one for one in units if one != unit) or NO_UNITS
            units = left if is_group else without_tool(units, name, groups, tools, always)
        elif is_group:
            units = with_units(units, [unit])
        else:
            without = tuple(one for one in units if one not in (f"-tool:{name}", NO_UNITS[0]))
            there = bool(without) and name in chosen_names(without, groups, tools, always)
            units = without if there else with_units(without, [unit])
    if units == model.tools.starting_units:
        return None
    return _changed(change_id, _short(model, units), tuple(names))


def only_those(model: ChatModel, names: Sequence[str], change_id: str) -> ViewChanged | None:
    """Return the change that offers exactly these tools or, without names, the configured tools.

    Raises:
        InputError: the tool or group does not exist.
    """
    groups, tools = model.tools.groups(model.tools.all()), model.tools.names(names)
    units, unknown = units_of(names, groups, tools)
    if unknown:
        near = nearest_name(unknown[0], groups, tools)
        raise InputError(
            f"There is no tool or group named {unknown[0]}; {f'did you mean {near}?' if near else '/tools lists them.'}"
        )
    if without := _without_tools(units, groups):
        raise InputError(_sentence(without))
    after = _short(model, with_units((), units))
    return None if after == model.log.tools else _changed(change_id, after, tuple(names))


def remove_tools(model: ChatModel, items: Sequence[str], change_id: str) -> ViewChanged | None:
    """Return the change for deleted lines of the context block, or None if none of them is a tool line."""
    gone = {item.removeprefix(ITEM) for item in items if item.startswith(ITEM)}
    left = tuple(unit for unit in model.tools.units if unit not in gone)
    if left == model.tools.units:
        return None
    if not left and model.tools.default_units:
        left = NO_UNITS
    names = tuple(unit.partition(":")[2] for unit in model.tools.units if unit in gone)
    return ViewChanged(
        change_id=change_id, kind="detached", tools=_short(model, left), report=ChangeReport(names=names)
    )


def _short(model: ChatModel, units: tuple[str, ...]) -> tuple[str, ...]:
    """Return the selection in its stored form, which is empty for the default selection."""
    return () if units == model.tools.unchosen_units else units


def _sentence(group: ProvidedGroup) -> str:
    return f"{group.why_not[:1].upper()}{group.why_not[1:]}."


def _changed(change_id: str, units: tuple[str, ...], names: tuple[str, ...]) -> ViewChanged:
    return ViewChanged(change_id=change_id, kind="tools_chosen", tools=units, report=ChangeReport(names=names))


def tool_items(model: ChatModel) -> tuple[ContextItem, ...]:
    """Return the context block's lines for chosen tools; none if all tools are offered."""
    units = model.tools.units
    if not units or not model.services.settings.tools.enabled:
        return ()
    registry = model.tools.all()
    groups, tools = model.tools.groups(registry), registry.names()
    items = []
    for unit in units:
        kind, _, name = unit.partition(":")
        members = chosen_names([unit], groups, tools) if kind != "-tool" else ()
        note = ""
        if kind == "group":
            state = _state(model, groups[name].provided).partition(":")[0] if name in groups else "unavailable"
            note = state or counted(len(members), "tool")
        elif kind == "tool" and not members:
            note = "not started yet" if model.tools.may_come(name) else "unavailable"
        label = f"without {name}" if kind == "-tool" else name
        specs = registry.only(members).specs() if members else ()
        tokens = model.meter.counter.tools(specs) if specs else 0
        items.append(ContextItem(ITEM + unit, "group" if kind == "group" else "tool", label, tokens, note))
    return tuple(items)


def _state(model: ChatModel, group: ProvidedGroup | None) -> str:
    """Return why the tools of a group are missing, or "" if they are available."""
    if group is None:
        return ""
    starts = group.state == NOT_STARTED and model.tools.may_offer(group.brings, group.name)
    return "starts with the next message" if starts else group.state


def _short_name(group: Group, groups: Mapping[str, Group], tools: Sequence[str]) -> str:
    """Return the short name of a group, or "" if it has none."""
    short = group.provided.short if group.provided is not None else ""
    return short if short and unit_of(short, groups, tools) == f"group:{group.name}" else ""


def tool_list(model: ChatModel) -> dict[str, Any]:
    """Return all tools and groups with their token costs, for the `/tools` list."""
    registry, counter = model.tools.all(), model.meter.counter
    groups, tools = model.tools.groups(registry), registry.names()
    units = model.tools.starting_units
    on = set(chosen_names(units, groups, tools, model.tools.always))
    offered, available = model.specs_for_messages(model.tools.offered()), model.specs_for_messages()
    sent, held_back = {spec.name for spec in offered}, model.tools.held_back
    rows = []
    for name in tools:
        tool, setting = registry.get(name), registry.settings.get(name)
        asks = setting.require_approval_before if setting else tool.effect != "read"
        rows.append(
            {
                "name": name,
                "source": registry.sources[name],
                "description": " ".join(tool.spec.description.split()),
                "on": name in on,
                "sent": name in sent,
                "why_not": HELD_BACK if name in held_back else _why_not_sent(tool, model) if name in on - sent else "",
                "asks": asks,
                "tokens": counter.tools(tuple(spec for spec in offered if spec.name == name) or (tool.spec,)),
            }
        )
    return {
        "tools": rows,
        "groups": [
            {
                "name": group.name,
                "description": group.description,
                "on": f"group:{group.name}" in units,
                "tools": list(members := chosen_names([f"group:{group.name}"], groups, tools)),
                "tokens": counter.tools(registry.only(members).specs()),
                "state": _state(model, group.provided),
                "short": _short_name(group, groups, tools),
            }
            for group in groups.values()
            if f"group:{group.name}" in units or group.provided is None or group.provided.is_listed
        ],
        "tokens": counter.tools(offered),
        "all_tokens": counter.tools(available),
        "is_default": not model.log.tools,
        "note": held_back_note(model),
    }


def _why_not_sent(tool: Tool, model: ChatModel) -> str:
    """Return why a chosen tool is not included in the next request, or ""."""
    if not model.services.settings.tools.enabled:
        return "tools are switched off"
    if model.purpose:
        return "this chat has no tools"
    if tool.only_when_removed and not model.log.has_removed:
        return "offered once something has been removed from the chat"
    return ""


def held_back_note(model: ChatModel) -> str:
    """Return a note on tools that are not offered because the context window is small, or "" if there are none."""
    names = model.tools.held_back
    if not names or not model.may_have_tools:
        return ""
    takes = model.meter.counter.tools(model.tools.all().specs())
    return (
        f"Tools not sent in this small window ({model.meter.window:,} tokens; all tools take {takes:,}):"
        f" {', '.join(names)}. /tools full offers all."
    )
