"""Reads one prompt file: checks its front matter, and splits its body into messages.

The format is that of codecompanion.nvim's Markdown prompts, as far as that is documented there and makes sense here.
Unused parts of a file are listed in `notes`: nothing is ignored silently. A file of the project is data from a
repository: its adapters, tools, servers and sending options are never used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.cutting import cut_line
from codecompanion.prompt_library.front_matter import FrontMatter, read_front_matter

Origin = Literal["user", "project"]

NAME_CHARS, TEXT_CHARS = 80, 200
_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_HEADING = re.compile(r"##[ \t]+(system|user)[ \t]*", re.IGNORECASE)
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_TOP = frozenset({"name", "description", "interaction", "strategy", "opts", "context", "rules", "parameters"})
_OPTS: dict[str, tuple[tuple[type, ...], str]] = {
    "alias": ((str,), "a word"),
    "short_name": ((str,), "a word"),
    "auto_submit": ((bool,), "true or false"),
    "enabled": ((bool,), "true or false"),
    "is_slash_cmd": ((bool,), "true or false"),
    "stop_context_insertion": ((bool,), "true or false"),
    "user_prompt": ((bool, str), "true, false or a question"),
    "modes": ((list, str), "a list of modes"),
    "filetypes": ((list, str), "a list of filetypes"),
    "adapter": ((dict, str), "a name, or a mapping with name and model"),
}
_NOT_USED = {
    "tools": "write @{group} in the text, or choose them with /tools",
    "mcp_servers": "servers are configured, not chosen by a prompt",
    "opts.ignore_system_prompt": "the system prompt is configured",
    "opts.intro_message": "this kind of message is not supported",
    "opts.is_workflow": "all its messages are sent as one",
    "opts.pre_hook": "a prompt cannot run code",
    "opts.placement": "the model chooses the place",
    "opts.index": "prompts are sorted by name",
    "picker": "a prompt cannot run code",
    "condition": "a prompt cannot run code",
}
"""Keys of codecompanion.nvim that are not used here, and why."""
_NOT_FROM_A_PROJECT = ("opts.adapter", "opts.auto_submit", "rules")
_CONTEXT_TYPES = ("file",)


class PromptMessage(msgspec.Struct, frozen=True):
    """A message of a prompt, from a section of the body."""

    role: Literal["system", "user"]
    text: str


class Parameter(msgspec.Struct, frozen=True):
    """A value to ask for before the prompt is used, unless it is `optional`; without `choices`, any text is valid."""

    name: str
    description: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt from a file, ready for the editor. `alias`: its slash command, or "". `notes`: the unused parts."""

    name: str
    description: str
    interaction: Literal["chat", "inline"]
    alias: str
    messages: tuple[PromptMessage, ...]
    auto_submit: bool = False
    user_prompt: str = ""
    stop_context_insertion: bool = False
    is_slash_cmd: bool = True
    modes: tuple[str, ...] = ()
    filetypes: tuple[str, ...] = ()
    adapter: str = ""
    model: str = ""
    parameters: tuple[Parameter, ...] = ()
    files: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_prompt(text: str, label: str, stem: str, origin: Origin) -> Prompt | None:
    """Return the prompt in a file's text, or None if it is disabled; `stem` is the file's name without `.md`.

    Raises:
        InputError: the prompt cannot be used; the message is one sentence with file and line.
    """
    return _Reader(read_front_matter(text, label), label, stem, origin).prompt()


class _Reader:
    """Reads and checks the values of one file, one after the other."""

    def __init__(self, matter: FrontMatter, label: str, stem: str, origin: Origin) -> None:
        self._matter, self._label, self._stem, self._origin = matter, label, stem, origin
        opts = matter.values.get("opts") or {}
        if not isinstance(opts, dict):
            raise self._wrong("opts", "a mapping", opts)
        self._opts: dict[str, Any] = opts
        self._notes: list[str] = []

    def prompt(self) -> Prompt | None:
        values = self._matter.values
        self._check_keys()
        if self._opt("enabled", True) is False:
            return None
        is_own = self._origin == "user"
        adapter, model = self._adapter() if is_own else ("", "")
        asked = self._opt("user_prompt", False)
        return Prompt(
            name=self._name(),
            description=cut_line(str(values.get("description") or ""), TEXT_CHARS),
            interaction=self._interaction(),
            alias=self._alias(),
            messages=self._messages(),
            auto_submit=is_own and bool(self._opt("auto_submit", False)),
            user_prompt="What should it focus on?" if asked is True else str(asked or ""),
            stop_context_insertion=bool(self._opt("stop_context_insertion", False)),
            is_slash_cmd=bool(self._opt("is_slash_cmd", True)),
            modes=self._words("opts.modes", self._opt("modes", [])),
            filetypes=self._words("opts.filetypes", self._opt("filetypes", [])),
            adapter=adapter,
            model=model,
            parameters=tuple(self._parameters()),
            files=tuple(self._files()),
            rules=self._words("rules", values.get("rules") or []) if is_own else (),
            notes=tuple(self._notes),
        )

    # ---- keys

    def _check_keys(self) -> None:
        for key, line in sorted(self._matter.lines.items(), key=lambda item: item[1]):
            top, _, inner = key.partition(".")
            if key in _NOT_USED:
                self._note(line, f"{key} is not used: {_NOT_USED[key]}")
            elif self._origin == "project" and key in _NOT_FROM_A_PROJECT:
                self._note(line, f"{key} is not used in a project's prompt")
            elif (not inner and top not in _TOP) or (top == "opts" and inner and inner not in _OPTS):
                self._note(line, f"unknown key `{key}`")

    def _note(self, line: int, text: str) -> None:
        self._notes.append(f"{self._label}:{line}: {text}.")

    def _wrong(self, key: str, expected: str, value: object) -> InputError:
        line = self._matter.lines.get(key, 1)
        return InputError(f"{self._label}:{line}: {key}: expected {expected}, got {cut_line(repr(value), 60)}.")

    def _opt(self, name: str, default: Any) -> Any:
        value = self._opts.get(name)
        if value is None:
            return default
        types, expected = _OPTS[name]
        if not isinstance(value, types):
            raise self._wrong(f"opts.{name}", expected, value)
        return value

    def _words(self, key: str, value: object) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self._wrong(key, "a list of words", value)
        return tuple(items)

    # ---- values

    def _name(self) -> str:
        name = self._matter.values.get("name")
        if name is None:
            raise InputError(f"{self._label}:1: the front matter has no name.")
        if not isinstance(name, str) or not name.strip():
            raise self._wrong("name", "a text", name)
        return cut_line(name, NAME_CHARS)

    def _alias(self) -> str:
        for name in ("alias", "short_name"):
            alias = self._opt(name, "")
            if alias and not _ALIAS.fullmatch(alias):
                raise self._wrong(f"opts.{name}", "a letter, then letters, digits, - or _", alias)
            if alias:
                return str(alias)
        return self._stem if _ALIAS.fullmatch(self._stem) else ""

    def _interaction(self) -> Literal["chat", "inline"]:
        values = self._matter.values
        key = "interaction" if "interaction" in values else "strategy"
        value = values.get(key) or "chat"
        if value == "workflow":
            self._note(self._matter.lines[key], f'{key}: "workflow" is not supported; all its messages are sent as one')
            return "chat"
        if value not in ("chat", "inline"):
            raise self._wrong(key, '"chat" or "inline"', value)
        if value == "inline" and self._origin == "project":
            self._note(
                self._matter.lines[key], f'{key}: "inline" is not used in a project\'s prompt; it goes to the chat'
            )
            return "chat"
        return "inline" if value == "inline" else "chat"

    def _adapter(self) -> tuple[str, str]:
        value = self._opt("adapter", "")
        if isinstance(value, str):
            return value, ""
        name, model = value.get("name"), value.get("model", "")
        if not isinstance(name, str) or not isinstance(model, str):
            raise self._wrong("opts.adapter", _OPTS["adapter"][1], value)
        for key in value.keys() - {"name", "model"}:
            self._note(self._matter.lines["opts.adapter"], f"opts.adapter.{key} is not used")
        return name, model

    def _parameters(self) -> Iterator[Parameter]:
        value = self._matter.values.get("parameters") or []
        if not isinstance(value, list):
            raise self._wrong("parameters", "a list", value)
        expected = "a name, or a mapping with name, description, default, choices and optional"
        for item in value:
            given = {"name": item} if isinstance(item, str) else item
            try:
                found = typed.convert(given, Parameter, strict=False)
            except msgspec.ValidationError:
                raise self._wrong("parameters", expected, item) from None
            unknown = sorted(set(given) - set(Parameter.__struct_fields__))
            if unknown or not re.fullmatch(r"\w+", found.name):
                raise self._wrong("parameters", expected, item)
            yield found

    def _files(self) -> Iterator[str]:
        value = self._matter.values.get("context") or []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._wrong("context", "a list of `type: file` with `path`", value)
        line = self._matter.lines.get("context", 1)
        for item in value:
            if item.get("type") not in _CONTEXT_TYPES:
                kind = cut_line(repr(item.get("type")), 40)
                self._note(line, f"context of type {kind} is not used; only files are attached")
                continue
            yield from self._words("context", item.get("path"))

    def _messages(self) -> tuple[PromptMessage, ...]:
        found = tuple(self._sections())
        if not any(message.role == "user" for message in found):
            raise InputError(f"{self._label}:{self._matter.body_line}: there is no text below `## user`.")
        return found

    def _sections(self) -> Iterator[PromptMessage]:
        """Yield the sections of the body; without headings, the whole body is a user message."""
        role: Literal["system", "user"] | None = None
        lines, fence = list[str](), ""
        before = list[str]()
        for number, line in enumerate(self._matter.body.split("\n"), self._matter.body_line):
            heading = None if fence else _HEADING.fullmatch(line)
            if heading:
                yield from _message(role, lines)
                before = before or (lines if role is None else [])
                role, lines = ("system" if heading.group(1).lower() == "system" else "user"), []
                if any(map(str.strip, before)):
                    self._note(number, "the text above the first heading is not used")
                    before = []
                continue
            fence = _fence_after(fence, line)
            lines.append(line)
        yield from _message(role or "user", lines)


def _message(role: Literal["system", "user"] | None, lines: list[str]) -> Iterator[PromptMessage]:
    text = "\n".join(lines).strip("\n")
    if role is not None and text.strip():
        yield PromptMessage(role, text)


def _fence_after(fence: str, line: str) -> str:
    """Return the fence that is open after a line, or "" if none is, so that headings inside code are not counted."""
    found = _FENCE.match(line)
    if not found:
        return fence
    marks = found.group(1)
    if not fence:
        return marks
    closes = marks[0] == fence[0] and len(marks) >= len(fence) and not line.strip().strip(marks[0])
    return "" if closes else fence
