"""Collects the facts of a log: files, commands, errors, names, todos, the user's words (lesson 21).

The evidence is tool calls and their results; the model's prose is only quoted, never trusted. Tool names do not matter:
a path is recognised by the argument's name and by its shape, in JSON and in shell commands. Pure and deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from codecompanion.context.message_facts.calls import (
    COMMAND_KEYS,
    PATH_KEYS,
    command_of,
    describe_call,
    is_word,
    looks_like_path,
    read_arguments,
    strings_in,
    todos_of,
    verb_of,
)
from codecompanion.context.message_facts.earlier_files import Action, earlier_files
from codecompanion.context.message_facts.name_patterns import MODULE, NAME, NOT_A_FILE, PATH, is_code_name
from codecompanion.context.message_facts.noise import is_noise, without_examples
from codecompanion.context.summary_text.recall_keys import without_span
from codecompanion.formats.cutting import TRUNCATED, cut_line_middle
from codecompanion.formats.regex import regex
from codecompanion.model.messages import (
    FILE_TAGS,
    GATHERED_TAG,
    IMAGE_TAG,
    LOOKING_TAG,
    STARTING_TAGS,
    SUMMARY_TAG,
    Message,
    ToolCall,
    is_typed_by_user,
)

_WEIGHTS: dict[Action, float] = {
    "edited": 6.0, "created": 6.0, "read": 3.0, "deleted": 2.0, "ran": 2.0, "used": 2.0, "searched": 1.5, "seen": 0.5,
}  # fmt: skip
COLOUR = regex(r"\x1b\[[0-9;]*m|\[\d+(?:;\d+)*m")
"""Matches terminal colour codes, with or without the escape character, which tools often drop."""
_ERROR = regex(
    r"^.*?\b(?:[A-Z]\w*(?:Error|Exception|Warning)\b|error(?:\[\w+\])?:|ERROR|FAILED|FAIL:|fatal:|panic:"
    r"|[Nn]o such file|not found|[Cc]annot |[Ff]ailed to |undefined (?:reference|symbol|variable)).*$",
    re.MULTILINE,
)
_EXIT = regex(r"exit(?:ed)?(?: with)?(?: status| code)?[ :=]+(-?\d+)|returncode[ :=]+(-?\d+)", re.IGNORECASE)
# Matches a sentence; a dot inside a name does not end it.
_SENTENCE = regex(r"(?:[^.!?\n]|[.!?](?=[^\s*`'\")\]]))+[.!?]?")
_DECISION = regex(
    r"\b(?:root cause|(?:the|real) (?:problem|issue|bug|reason) (?:is|was)|decided|turns out|because of"
    r"|the fix (?:is|was)|so I (?:will|kept|chose|used))\b",
    re.IGNORECASE,
)
_WORDS = regex(r"\w{2,}")
_DECISION_CHARS, _DECISION_WORDS = 400, 6
# Matches definitions in edited text, in common languages; lines of a diff begin with a sign.
_DEFINITION = regex(
    r"^[+ \t]*(?:(?:export|default|pub(?:\([^)\n]*\))?|async|static|public|private|protected|local|abstract|final)"
    r"[ \t]+)*"
    r"(?:def|class|function|fn|func|struct|enum|trait|interface|module)\s+(?:\([^)\n]*\)\s*)?(?=.{3})([A-Za-z_$][\w$]{0,99}(?:(?:\.|::?)[\w$]{1,99})*)(?![\w$])",
    re.MULTILINE,
)
_TODO = regex(r"^[ \t]*(?:[-*]|\d+[.)])[ \t]*\[( |x|X|-|~)\][ \t]+(.+)$", re.MULTILINE)
# Upper limit for the counts that an earlier ledger gives a file.
_MAX_TIMES = 99
# Characters of a long result that are read: names and paths are near its ends and repeat.
_HEAD_CHARS, _TAIL_CHARS = 48_000, 8_000
_COMMAND_CHARS, _ERROR_CHARS = 160, 240
# Matches the point where text was truncated, with the partial words around it, which are not names.
_CUT = regex(r"(?<!\S)\S{0,200}\n(?:\.\.\.\[truncated\]\.\.\.|…\[\d+ characters left out\]…)\n\S{0,200}")


class FileFact(msgspec.Struct):
    """A file in the log: the count of each action on it, their total weight, and the position of the last one.

    `symbols`: definitions that edits wrote to the file, with the position of the newest edit.
    """

    path: str
    actions: dict[Action, int]
    weight: float = 0.0
    last: int = 0
    symbols: dict[str, int] = {}


class CommandFact(msgspec.Struct, frozen=True):
    """A command that ran. `status` is taken from the result: `ok`, `exit 1`, `failed`, or "" if unknown."""

    text: str
    status: str
    position: int


class ErrorFact(msgspec.Struct, frozen=True):
    """An error line of a result, its source, and whether the same call succeeded later."""

    text: str
    source: str
    fixed: bool
    position: int


class Facts(msgspec.Struct):
    """All facts for the summary. Sequences are in the order of the log."""

    files: dict[str, FileFact]
    names: dict[str, float]
    commands: list[CommandFact]
    errors: list[ErrorFact]
    todos: list[tuple[str, bool]]
    requests: list[str]
    statements: list[str]
    decisions: list[str]
    earlier: list[str]
    attachments: list[str]
    open_calls: list[ToolCall]
    recent_calls: list[tuple[ToolCall, bool | None]]
    request_ids: list[str] = []
    unanswered: bool = False


def gather(messages: Sequence[Message]) -> Facts:
    """Return the facts of the messages; rules, images and the system prompt are skipped."""
    reader = _Reader(messages)
    for position, message in enumerate(messages):
        reader.read(position, message)
    return reader.finish()


class _Reader:
    """Collects the facts in one pass over the messages."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.facts = Facts({}, {}, [], [], [], [], [], [], [], [], [], [])
        self.count = len(messages)
        self.calls: list[tuple[int, ToolCall]] = []
        self.waiting: list[ToolCall] = []
        self.outcome: dict[str, int] = {}

    def read(self, position: int, message: Message) -> None:
        """Add the facts of one message."""
        if message.role == "system" or message.tag in (*STARTING_TAGS, IMAGE_TAG):
            return
        if message.tag == SUMMARY_TAG:
            self.facts.earlier.append(without_span(message.text))
            self._names(message.text, position, 0.5)
            for path in PATH.findall(message.text):
                self._file(path, "seen", position)
            self._earlier(message.text, position)
        elif message.role == "tool":
            self._result(position, message)
        elif message.role == "assistant":
            self._assistant(position, message)
        else:
            self._user(position, message)

    def _earlier(self, text: str, position: int) -> None:
        """Add the file actions of an earlier ledger."""
        for file in earlier_files(text):
            for action, times in file.actions.items():
                for _ in range(min(times, _MAX_TIMES)):
                    self._file(file.path, action, position)
            fact = self.facts.files.get(_cleaned(file.path))
            if fact is not None:
                fact.symbols.update(dict.fromkeys(file.symbols, position))

    def _user(self, position: int, message: Message) -> None:
        if is_typed_by_user(message):
            if not is_noise(message.text):
                self.facts.requests.append(message.text)
                self.facts.request_ids.append(message.id)
                self.facts.unanswered = True
            self._mentions(message.text, position, 3.0)
        elif message.tag == GATHERED_TAG:  # only the files count: their contents are not part of the conversation
            for path in dict.fromkeys(piece.path for piece in message.gathered if piece.path):
                self._file(path, "used", position)
        elif message.mentioned is not None:
            for path in message.mentioned.paths:
                self._file(path, "seen", position)
        elif message.tag != LOOKING_TAG:
            if message.path:
                self.facts.attachments.append(message.path)
                self._file(message.path, "read" if message.tag in FILE_TAGS else "seen", position)
            self._names(message.text, position, 0.3)

    def _assistant(self, position: int, message: Message) -> None:
        self.facts.unanswered = False
        if message.text.strip():
            self.facts.statements.append(message.text)
            self.facts.decisions += decisions_in(_shortened(message.text))
            self._mentions(message.text, position, 1.5)
            self.facts.todos += [(text.strip(), mark in "xX") for mark, text in _TODO.findall(message.text)]
        self.waiting = list(message.tool_calls)
        for call in message.tool_calls:
            self.calls.append((position, call))
            self._call(position, call)

    def _mentions(self, text: str, position: int, weight: float) -> None:
        self._names(without_examples(_shortened(text)), position, weight)
        for path in paths_in(text):
            self._file(path, "seen", position)

    def _call(self, position: int, call: ToolCall) -> None:
        arguments = read_arguments(call.arguments)
        verb = verb_of(call.name)
        for key, value in strings_in(arguments):
            if key in COMMAND_KEYS and is_word(value):
                verb = verb_of(value) or verb
        edited = ""
        for key, value in strings_in(arguments):
            if key in COMMAND_KEYS and not is_word(value):
                for path in PATH.findall(_shortened(value)):
                    self._file(path, verb_of(value.split()[0] if value.split() else "") or "ran", position)
            elif PATH_KEYS.search(key) and looks_like_path(value):
                self._file(value, verb or "used", position)
                edited = edited or (value if verb in ("edited", "created") else "")
            else:
                for path in dict.fromkeys(PATH.findall(_shortened(value))):
                    self._file(path, "seen", position)
            self._names(value, position, 4.0)
        if edited:
            self._symbols(edited, arguments, position)
        todos = todos_of(arguments)
        if todos:
            self.facts.todos = todos

    def _result(self, position: int, message: Message) -> None:
        call = next((call for call in self.waiting if call.id == message.tool_call_id), None)
        if call is not None:
            self.waiting.remove(call)
        text = _shortened(message.text)
        self._names(text, position, 1.0)
        for path in dict.fromkeys(PATH.findall(text)):
            self._file(path, "seen", position)
        failed, status = _outcome(message, text)
        source = describe_call(call) if call else ""
        command = command_of(call) if call else ""
        if call is not None:
            self.facts.recent_calls.append((call, failed))
            if command:
                self.facts.commands.append(CommandFact(cut_line_middle(command, _COMMAND_CHARS), status, position))
            if not failed:
                self.outcome[source] = position
        if failed:
            lines = (
                _ERROR.findall(text) or [line for line in text.split("\n") if line.strip()][-1 if command else 0 :][:1]
            )
            self.facts.errors += [
                ErrorFact(cut_line_middle(line, _ERROR_CHARS), source, False, position)
                for line in _last_distinct(lines, 2)
            ]

    def finish(self) -> Facts:
        """Return the facts; errors whose call succeeded later are marked as fixed."""
        facts = self.facts
        facts.errors = [
            msgspec.structs.replace(error, fixed=self.outcome.get(error.source, -1) > error.position)
            for error in facts.errors
        ]
        facts.open_calls = self.waiting
        return facts

    def _age(self, position: int) -> float:
        """Return a weight from 0.25 (oldest message) to 1.25 (newest): recent facts are more likely to be needed."""
        return 0.25 + (position + 1) / self.count if self.count else 1.0

    def _file(self, path: str, action: Action, position: int) -> None:
        path = _cleaned(path)
        if path in NOT_A_FILE or not path or len(path) > 240 or "\n" in path:
            return
        if action == "seen" and MODULE.fullmatch(path):
            return
        fact = self.facts.files.setdefault(path, FileFact(path, {}))
        fact.actions[action] = fact.actions.get(action, 0) + 1
        fact.weight += _WEIGHTS[action] * self._age(position) ** 2
        fact.last = position

    def _symbols(self, path: str, arguments: Any, position: int) -> None:
        """Record the definitions in an edit of a file: functions, classes, types."""
        fact = self.facts.files.get(_cleaned(path))
        if fact is None:
            return
        for _, value in strings_in(arguments):
            for name in _DEFINITION.findall(_shortened(value)):
                fact.symbols[name] = position

    def _names(self, text: str, position: int, weight: float) -> None:
        """Add weight to the names in the text, once per message, because names that recur over time matter."""
        names = self.facts.names
        gain = weight * self._age(position) ** 3
        for name in sorted(set(NAME.findall(_shortened(text)))):
            if 4 <= len(name) <= 60 and is_code_name(name):
                names[name] = names.get(name, 0.0) + gain


def paths_in(text: str) -> list[str]:
    """Return the paths that a string mentions outside its examples, in the same form as in `Facts.files`."""
    return [_cleaned(path) for path in PATH.findall(without_examples(_shortened(text)))]


def _cleaned(path: str) -> str:
    return path.strip().lstrip("@").rstrip("/.,:;").removeprefix("./")


def decisions_in(text: str) -> list[str]:
    """Return the sentences in which the assistant states a finding or decision, without headings and lead-ins."""
    said = (sentence.strip() for sentence in _SENTENCE.findall(text))
    return [
        cut_line_middle(sentence, 220)
        for sentence in said
        if 12 <= len(sentence) <= _DECISION_CHARS
        and _DECISION.search(sentence)
        and not sentence.startswith("#")
        and not sentence.rstrip("*_ ").endswith(":")
        and len(_WORDS.findall(sentence)) >= _DECISION_WORDS
    ]


def _outcome(message: Message, text: str) -> tuple[bool, str]:
    """Return whether a call failed, and a word for its status, using only exit codes and error marks."""
    codes = _EXIT.findall(text[:200] + "\n" + text[-300:])
    code = next((a or b for a, b in codes), "")
    if code:
        failed = code != "0" or message.is_error
        return failed, "ok" if not failed else f"exit {code}"
    if message.is_error:
        return True, "failed"
    return bool(
        re.search(r"^Traceback \(most recent|^(?:[A-Z]\w*)?(?:Error|Exception):|^error:", text, re.MULTILINE)
    ), ""


def _last_distinct(lines: Sequence[str], number: int) -> list[str]:
    return list(dict.fromkeys(line.strip() for line in reversed(lines) if line.strip()))[:number][::-1]


def _shortened(text: str) -> str:
    text = COLOUR.sub("", text) if "[" in text else text
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = text[:_HEAD_CHARS] + TRUNCATED + text[-_TAIL_CHARS:]
    return _CUT.sub("\n", text)
