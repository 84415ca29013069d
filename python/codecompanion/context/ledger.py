"""The summary without a model: nine sections written from the log by code (R-526, lessons 11, 14, 21).

Nothing is invented: user messages are quoted, file names, identifiers, commands and errors are copied, a status comes
from an exit code or an error mark. It is what the offline adapter answers, and the last tier when no model helps.
Every text is data: it stands in quotes or on one line, so that it cannot open a section or close a wrapper.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence

from codecompanion.context.ledger_facts import (
    Action,
    Facts,
    FileFact,
    describe_call,
    gather,
    one_line,
)
from codecompanion.messages import Message

SECTIONS = (
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and Fixes",
    "Problem Solving",
    "All User Messages",
    "Pending Tasks",
    "Current Work",
    "Optional Next Step",
)
# Shares of the budget; what a section leaves over goes to the identifiers (section 2), which fill up last.
_SHARES = {1: 0.10, 3: 0.25, 4: 0.08, 5: 0.08, 6: 0.28, 7: 0.05, 8: 0.08, 9: 0.03}
# Characters a token stands for at most: a longer text need not be counted to know that it is too long.
_LONGEST_TOKEN = 16
# User messages are not shortened below this many tokens; rather the oldest are left out.
_SHORTEST_QUOTE = 40
_TAGS = re.compile(r"<(\s*/?\s*)(message|conversation|summary|analysis|important|system|user|assistant)\b", re.I)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{200,}={0,2}")
_HEADING = re.compile(r"^(?:#+ )?(\d)\. (?:\*\*)?(?:" + "|".join(SECTIONS) + r")(?:\*\*)?", re.MULTILINE)
_MARK = " […] "
_LATEST = "Latest request:"

Count = Callable[[str], int]


def summarise(messages: Sequence[Message], max_tokens: int, count: Count) -> str:
    """Return the summary of the messages, at most `max_tokens` by `count`; "" only when nothing fits.

    A summary among the messages is carried on: its quoted user messages, files and open tasks stay.
    """
    facts = gather(messages)
    budget = max_tokens
    for _ in range(12):
        text = _write(facts, budget, count)
        size = count(text)
        if size <= max_tokens:
            return text
        budget = int(budget * min(0.9, max_tokens / size))
    return _cut_to(text, max_tokens, count)


def _write(facts: Facts, budget: int, count: Count) -> str:
    earlier = _carry(facts.earlier)
    room = max(0, budget - count(_join({})))
    makers: dict[int, Callable[[int], list[str]]] = {
        6: lambda limit: _user_messages(earlier.get(6, []), facts, limit, count),
        1: lambda limit: _request(earlier.get(1, []), facts, limit, count),
        8: lambda limit: _current(facts, limit, count),
        7: lambda limit: _pending(earlier.get(7, []), facts, limit, count),
        9: lambda limit: _next_step(facts, limit, count),
        4: lambda limit: _fit(_errors(facts), limit, count),
        5: lambda limit: _fit(_solved(facts), limit, count),
        3: lambda limit: _files(facts, limit, count),
    }
    parts: dict[int, list[str]] = {}
    left = room
    for section, make in makers.items():
        parts[section] = make(min(left, int(room * _SHARES[section])))
        left -= count("\n".join(parts[section]))
    parts[2] = _names(facts, max(0, left), "\n".join("\n".join(lines) for lines in parts.values()), count)
    return _join(parts)


def _join(parts: dict[int, list[str]]) -> str:
    return "\n\n".join(
        f"{number}. **{title}**\n" + ("\n".join(parts.get(number, ())) or "None")
        for number, title in enumerate(SECTIONS, 1)
    )


def neutral(text: str) -> str:
    """Return the text unable to close or open a wrapper, without embedded binary data and control characters."""
    text = _BASE64.sub("[binary data]", _TAGS.sub(r"<\\\1\2", text))
    return "".join(char if char >= " " or char in "\n\t" else "�" for char in text)


def _quote(text: str) -> list[str]:
    """Return the text as quoted lines: verbatim, and no line can be taken for a heading."""
    return [f"> {line}".rstrip() for line in neutral(text).split("\n")]


def _plain(text: str, limit: int) -> str:
    return neutral(one_line(text, limit)).replace("`", "'")


def _fit(lines: Iterable[str], limit: int, count: Count) -> list[str]:
    """Return the first lines that fit."""
    kept: list[str] = []
    for line in lines:
        limit -= count(line) + 1
        if limit < 0:
            break
        kept.append(line)
    return kept


def _shorten(text: str, limit: int, count: Count) -> str:
    """Return head and tail of the text in at most `limit` tokens, with a mark for what is left out."""
    if len(text) <= limit * _LONGEST_TOKEN and count(text) <= limit:
        return text
    size = min(len(text), limit * _LONGEST_TOKEN)
    while size > 8:
        size = int(size * 0.8)
        head = size * 2 // 3
        short = text[:head].rstrip() + _MARK + text[len(text) - (size - head) :].lstrip()
        if count(short) <= limit:
            return short
    return ""


def _carry(earlier: Sequence[str]) -> dict[int, list[str]]:
    """Return the lines of the newest earlier summary by section; without our headings all of it is section 1."""
    if not earlier:
        return {}
    text, found = earlier[-1], {}
    marks = list(_HEADING.finditer(text))
    if not marks:
        return {1: ["An earlier summary:", *_quote(text.strip())]}
    for mark, end in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
        lines = [line for line in text[mark.end() : end].split("\n") if line.strip() and line.strip() != "None"]
        found[int(mark.group(1))] = lines
    return found


def _request(carried: list[str], facts: Facts, limit: int, count: Count) -> list[str]:
    lines = _fit(_before_latest(carried), limit // 2, count)
    first = facts.requests[:1] if not carried else []
    latest = facts.requests[-1:] if len(facts.requests) > len(first) else []
    for label, texts in (("First request:", first), (_LATEST, latest)):
        for text in texts:
            room = limit - count("\n".join(lines)) - count(label) - 4
            short = _shorten(text.strip(), room // (2 if texts is first and latest else 1), count)
            if short:
                lines += [label, *_quote(short)]
    return _fit(lines, limit, count)


def _before_latest(carried: list[str]) -> list[str]:
    """Return the carried first section without the request that was the latest one then."""
    return carried[: carried.index(_LATEST)] if _LATEST in carried else carried


def _user_messages(carried: list[str], facts: Facts, limit: int, count: Count) -> list[str]:
    """Return every user message in its own words; the longest are shortened first, the oldest go last of all."""
    requests = facts.requests[-max(1, limit // 3) :]
    texts = [text.strip()[: limit * _LONGEST_TOKEN] for text in requests]
    sizes = [count("\n".join(_quote(text))) + 3 for text in texts]
    cap = limit
    while cap > _SHORTEST_QUOTE and sum(min(size, cap) for size in sizes) > limit * (0.7 if carried else 1):
        cap = int(cap * 0.8)
    blocks = ["\n".join(_quote(_shorten(text.strip(), max(8, cap - 4), count))) for text in requests if text.strip()]
    kept: list[str] = []
    for block in reversed(blocks):
        if limit < count(block) + 3:
            kept.append("> […]")
            break
        limit -= count(block) + 3
        kept.append(block)
    complete = len(kept) == len(blocks) and len(requests) == len(facts.requests)
    before = _fit(reversed(carried), limit, count)[::-1] if complete else []
    lines = before + [line for block in reversed(kept) for line in (*block.split("\n"), ">")]
    return lines[:-1] if lines and lines[-1] == ">" else lines


_DONE: dict[Action, str] = {
    "edited": "edited", "created": "created", "deleted": "deleted", "read": "read", "ran": "in a command",
    "searched": "searched", "used": "used", "seen": "seen",
}  # fmt: skip


def _files(facts: Facts, limit: int, count: Count) -> list[str]:
    """Return the files by weight, grouped by folder so that more of them fit."""
    ranked = sorted(_merged(facts.files.values()), key=lambda fact: (-fact.weight, -fact.last, fact.path))
    chosen: dict[str, list[str]] = {}
    for fact in ranked[:400]:
        folder, name = posixpath.split(fact.path)
        entry = _plain(name, 100) + _done(fact)
        cost = count(entry) + 1 + (0 if folder in chosen else count(folder) + 4)
        if cost > limit:
            if limit < 12:
                break
            continue
        limit -= cost
        chosen.setdefault(folder, []).append(entry)
    return [f"- {_plain(folder, 160) + '/' if folder else ''} {', '.join(names)}".replace("-  ", "- ")
            for folder, names in chosen.items()]  # fmt: skip


def _merged(files: Iterable[FileFact]) -> list[FileFact]:
    """Return the files, a short spelling of a path (relative, bare name) joined to the only longer one it can mean."""
    by_name: dict[str, list[FileFact]] = {}
    for fact in files:
        by_name.setdefault(posixpath.basename(fact.path), []).append(fact)
    merged: list[FileFact] = []
    for same_name in by_name.values():
        whole: list[FileFact] = []
        for fact in sorted(same_name, key=lambda fact: (-len(fact.path), fact.path)):
            tail = "/" + re.sub(r"^(?:\.\./)+", "", fact.path).lstrip("/")
            longer = [place for place, other in enumerate(whole) if other.path.endswith(tail)]
            if len(longer) == 1:
                whole[longer[0]] = _joined(whole[longer[0]], fact)
            else:
                whole.append(fact)
        merged += whole
    return merged


def _joined(one: FileFact, other: FileFact) -> FileFact:
    actions = dict(one.actions)
    for action, times in other.actions.items():
        actions[action] = actions.get(action, 0) + times
    return FileFact(one.path, actions, one.weight + other.weight, max(one.last, other.last))


def _done(fact: FileFact) -> str:
    done = [_DONE[action] + (f" ×{times}" if times > 1 else "") for action, times in sorted(fact.actions.items())
            if action in ("edited", "created", "deleted", "read")]  # fmt: skip
    return f" ({', '.join(done)})" if done else ""


def _errors(facts: Facts) -> list[str]:
    """Return the errors, the newest first, each once."""
    lines: dict[str, None] = {}
    for error in reversed(facts.errors):
        where = f" ({_plain(error.source, 80)})" if error.source else ""
        lines.setdefault(f"- {_plain(error.text, 200)}{where}{': succeeded later' if error.fixed else ''}")
    return list(lines)


def _solved(facts: Facts) -> list[str]:
    """Return what the assistant found out, in its words, and commands with their last status, the newest first."""
    said = [f'- said: "{_plain(text, 220)}"' for text in dict.fromkeys(reversed(facts.decisions))][:4]
    lines: dict[str, str] = {}
    for command in reversed(facts.commands):
        lines.setdefault(command.text, command.status)
    return said + [f"- ran: {_plain(text, 120)}{' → ' + status if status else ''}" for text, status in lines.items()]


def _pending(carried: list[str], facts: Facts, limit: int, count: Count) -> list[str]:
    todos = dict(facts.todos)
    lines = [f"- [{'x' if done else ' '}] {_plain(text, 160)}" for text, done in todos.items() if not done]
    lines += [f"- not answered: {_plain(describe_call(call), 120)}" for call in facts.open_calls]
    if facts.unanswered and facts.requests:
        lines.append("- the latest user message has no answer yet")
    if not todos:
        lines += carried
    lines += [f"- [x] {_plain(text, 80)}" for text, done in todos.items() if done]
    return _fit(lines, limit, count)


def _current(facts: Facts, limit: int, count: Count) -> list[str]:
    lines = []
    for call, failed in reversed(facts.recent_calls[-8:]):
        status = " (failed)" if failed else ""
        lines.append(f"- {_plain(describe_call(call), 140)}{status}")
    kept = _fit(lines, limit // 2, count)[::-1]
    if facts.statements:
        room = limit - count("\n".join(kept)) - 12
        said = _shorten(facts.statements[-1].strip(), room, count)
        kept += ["The assistant's last words:", *_quote(said)] if said else []
    return _fit(kept, limit, count)


def _next_step(facts: Facts, limit: int, count: Count) -> list[str]:
    if facts.unanswered and facts.requests:
        said = _shorten(facts.requests[-1].strip(), limit - 12, count)
        return _fit(["Answer the latest user message:", *_quote(said)], limit, count) if said else []
    open_todo = next((text for text, done in facts.todos if not done), "")
    return _fit([f"- {_plain(open_todo, 160)}"], limit, count) if open_todo else []


def _names(facts: Facts, limit: int, already: str, count: Count) -> list[str]:
    """Return the identifiers that occurred often and lately and stand nowhere else in the summary."""
    head = "Identifiers used, the most important first: "
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


def _cut_to(text: str, max_tokens: int, count: Count) -> str:
    """Return as many whole lines as fit."""
    lines = text.split("\n")
    while lines and count("\n".join(lines)) > max_tokens:
        lines = lines[: int(len(lines) * 0.8)]
    return "\n".join(lines)
