"""Formats the lines of a ledger: files, errors, commands, decisions, todos, names (lesson 21).

Each function takes the facts and the room in tokens, and returns the most important lines first. Every text is kept on
one line, so it cannot start a section or close a wrapper. `message_facts.earlier_files` parses the file lines again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable

from codecompanion.context.ledger.facts import Facts, FileFact
from codecompanion.context.message_facts.calls import describe_call
from codecompanion.context.message_facts.earlier_files import ROOT_LINE, Action
from codecompanion.formats.cutting import cut_line_bytes, cut_line_middle, cut_to_tokens
from codecompanion.formats.regex import regex

_TAGS = regex(r"<(\s*/?\s*)(message|conversation|summary|analysis|important|system|user|assistant)\b", re.I)
_BASE64 = regex(r"[A-Za-z0-9+/]{200,}={0,2}")
_UPWARDS = regex(r"^(?:\.{1,2}/)+")
_SYMBOLS_SHOWN = 6
_MAX_ROOT = 160
_DONE: tuple[Action, ...] = ("created", "deleted", "edited", "read")

Count = Callable[[str], int]


def neutral(text: str) -> str:
    """Return the text without binary data and control characters, escaped so that it cannot open or close a wrapper."""
    text = _BASE64.sub("[binary data]", _TAGS.sub(r"<\\\1\2", text))
    return "".join(char if char >= " " or char in "\n\t" else "�" for char in text)


def cut_bytes(text: str, limit: int) -> str:
    """Return the text on one line, in at most `limit` bytes of UTF-8, without splitting a character."""
    return cut_line_bytes(neutral(text), limit)


def quote(text: str) -> list[str]:
    """Return the text verbatim as quoted lines, so that no line can pass for a heading."""
    return [f"> {line}".rstrip() for line in neutral(text).split("\n")]


def plain(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters, without backticks."""
    return neutral(cut_line_middle(text, limit)).replace("`", "'")


def write_within(write: Callable[[int], str], max_tokens: int, count: Count, tries: int) -> str:
    """Return the result of `write` with a budget that keeps it within `max_tokens`, or else the result of the last try.

    Lines are counted one by one, but the whole text may have more tokens than the sum of its lines.
    """
    budget = max_tokens
    text = write(budget)
    for _ in range(tries - 1):
        size = count(text)
        if size <= max_tokens:
            break
        budget = int(budget * min(0.9, max_tokens / size))
        text = write(budget)
    return text


def fit(lines: Iterable[str], limit: int, count: Count) -> list[str]:
    """Return the first lines that fit in `limit` tokens."""
    kept: list[str] = []
    for line in lines:
        limit -= count(line) + 1
        if limit < 0:
            break
        kept.append(line)
    return kept


def quote_within(text: str, limit: int, count: Count) -> list[str]:
    """Return the text as quoted lines accepted by `fit`, reduced to head and tail if it is too long."""
    room = limit
    while room > 0:
        short = cut_to_tokens(text, room, count)
        lines = quote(short) if short else []
        over = sum(count(line) + 1 for line in lines) - limit
        if over <= 0:
            return lines
        room = min(room * 9 // 10, room - over // 2)
    return []


def file_lines(facts: Facts, limit: int, count: Count) -> list[str]:
    """Return the files by weight with their actions and symbols: `- src/a.py (read)`, `- src/: b.py, c.py (edited)`.

    Files of one folder share a line, and a folder common to many files is named once, so that more fit.
    """
    ranked = sorted(_merged(facts.files.values()), key=lambda fact: (-fact.weight, -fact.last, fact.path))[:400]
    root = _root(posixpath.dirname(fact.path) for fact in ranked)
    head = [ROOT_LINE.format(root=plain(root, _MAX_ROOT))] if root and len(root) <= _MAX_ROOT else []
    limit -= sum(count(line) + 1 for line in head)
    chosen: dict[str, list[str]] = {}
    for fact in ranked:
        folder, name = posixpath.split(fact.path)
        folder = _within(folder, root) if head else folder
        entry = plain(name, 100) + _done(fact)
        cost = count(entry) + 1 + (0 if folder in chosen else count(folder) + 4)
        if cost > limit:
            if limit < 12:
                break
            continue
        limit -= cost
        chosen.setdefault(folder, []).append(entry)
    lines = [f"- {_path_of(plain(folder, 160), names)}" for folder, names in chosen.items()]
    return [*head, *lines] if lines else []


def _root(folders: Iterable[str]) -> str:
    """Return the common folder whose removal from the lines saves the most, or "" if none saves enough."""
    saved: dict[str, int] = {}
    for folder in set(folders):
        parts = folder.split("/")
        for end in range(3, len(parts) + 1) if folder.startswith("/") else ():
            root = "/".join(parts[:end])
            saved[root] = saved.get(root, 0) + len(root)
    best = max(saved, key=lambda root: (saved[root], root), default="")
    return best if best and saved[best] > 2 * len(ROOT_LINE) + len(best) else ""


def _within(folder: str, root: str) -> str:
    """Return the folder relative to the root, or unchanged if it is outside the root."""
    return "." if folder == root else folder.removeprefix(f"{root}/")


def _path_of(folder: str, names: list[str]) -> str:
    """Return the files of a folder on one line, or the path of a single file."""
    if not folder or len(names) == 1:
        return f"{folder}/{names[0]}" if folder else ", ".join(names)
    return f"{folder}/: {', '.join(names)}"


def _merged(files: Iterable[FileFact]) -> list[FileFact]:
    """Return the files, each under its longest spelling.

    A shorter spelling (a bare name, or a path in an import) is merged into the only longer path with that ending. If
    there are several, a file that was only mentioned may be merged into the most important one; actions on a file are
    never attributed to another file.
    """
    by_name: dict[str, list[FileFact]] = {}
    for fact in files:
        by_name.setdefault(posixpath.basename(fact.path), []).append(fact)
    merged: list[FileFact] = []
    for same_name in by_name.values():
        whole: list[FileFact] = []
        for fact in sorted(same_name, key=lambda fact: (-len(_spelled(fact)), fact.path)):
            tail = f"/{_spelled(fact).lstrip('/')}"
            longer = [place for place, other in enumerate(whole) if f"/{other.path}".endswith(tail)]
            if len(longer) > 1 and not _is_worked_on(fact):
                longer = [max(longer, key=lambda place: (whole[place].weight, -place))]
            if len(longer) == 1:
                whole[longer[0]] = _joined(whole[longer[0]], fact)
            else:
                whole.append(
                    fact if _is_worked_on(fact) else FileFact(_spelled(fact), fact.actions, fact.weight, fact.last)
                )
        merged += whole
    return merged


def _spelled(fact: FileFact) -> str:
    """Return the path without leading `../` steps, whose starting folder is unknown."""
    return _UPWARDS.sub("", fact.path)


def _is_worked_on(fact: FileFact) -> bool:
    """Return whether the file was read or changed rather than only named."""
    return any(action in _DONE for action in fact.actions)


def _joined(one: FileFact, other: FileFact) -> FileFact:
    actions = dict(one.actions)
    for action, times in other.actions.items():
        actions[action] = actions.get(action, 0) + times
    symbols = {**one.symbols, **other.symbols}
    return FileFact(one.path, actions, one.weight + other.weight, max(one.last, other.last), symbols)


def _done(fact: FileFact) -> str:
    """Return the actions on the file and the symbols written: ` (edited ×2, read: load, Parser)`."""
    done = [
        action + (f" ×{times}" if times > 1 else "")
        for action, times in sorted(fact.actions.items())
        if action in _DONE
    ]
    newest = sorted(fact.symbols, key=lambda name: (-fact.symbols[name], name))[:_SYMBOLS_SHOWN]
    names = f": {', '.join(newest)}" if newest and done else ""
    return f" ({', '.join(done)}{names})" if done else ""


def error_lines(facts: Facts) -> list[str]:
    """Return the distinct errors, newest first."""
    lines: dict[str, None] = {}
    for error in reversed(facts.errors):
        where = f" ({plain(error.source, 80)})" if error.source else ""
        lines.setdefault(f"- {plain(error.text, 200)}{where}{': succeeded later' if error.fixed else ''}")
    return list(lines)


def decision_lines(facts: Facts) -> list[str]:
    """Return the assistant's findings and decisions in its own words, newest first."""
    return [f'- said: "{plain(text, 220)}"' for text in dict.fromkeys(reversed(facts.decisions))][:4]


def command_lines(facts: Facts) -> list[str]:
    """Return the commands with their last status, newest first."""
    lines: dict[str, str] = {}
    for command in reversed(facts.commands):
        lines.setdefault(command.text, command.status)
    return [f"- ran: {plain(text, 120)}{' → ' + status if status else ''}" for text, status in lines.items()]


def todo_lines(facts: Facts, carried: list[str]) -> list[str]:
    """Return open and finished tasks from the todo tool; `carried` replaces them if the tool was not used."""
    todos = dict(facts.todos)
    lines = [f"- [ ] {plain(text, 160)}" for text, done in todos.items() if not done]
    lines += [f"- not answered: {plain(describe_call(call), 120)}" for call in facts.open_calls]
    if facts.unanswered and facts.requests:
        lines.append("- the latest user message has no answer yet")
    if not todos:
        lines += carried
    return lines + [f"- [x] {plain(text, 80)}" for text, done in todos.items() if done]


def name_line(head: str, facts: Facts, limit: int, already: str, count: Count) -> list[str]:
    """Return the frequent and recent identifiers missing from the rest of the summary, on one line."""
    ranked = sorted(facts.names, key=lambda name: (-facts.names[name], name))
    words = [name for name in ranked[:3000] if name not in already]
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if count(head + ", ".join(words[:middle])) <= limit - 2:
            low = middle
        else:
            high = middle - 1
    return [head + ", ".join(words[:low])] if low else []
