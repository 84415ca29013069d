"""`verify_summary`: marks names and numbers in a summary that do not occur in the history (lesson 11).

Models invent names: 3 % of the file names in real summaries do not exist. Every path, every word that can only be an
identifier, every word in backticks, every version and every measurement (`1.5s`) is looked up in the messages that the
stage started with (message text, call arguments, earlier summaries). Plain numbers (a summary does its own counting),
status codes, and files that the text plans to write are exempt. An unknown name is followed by ` (unverified)`, outside
its backticks; for a code block the mark is on a line below. Nothing is removed: the next model and the user see which
names are unreliable. A name that an earlier summary marked stays unverified. A summary written by code is skipped,
because code invents no names and only shortens them.

One pass over the history builds the sets (`known_names`), and one over the prose queries them. The step runs after the
model has written the text and before code adds its own (quotes, ledger).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from codecompanion.context.grounding.known_names import NUMBER, WORD, Known, KnownNames, is_hash
from codecompanion.context.grounding.planned_files import PLACE, planned_files
from codecompanion.context.message_facts.name_patterns import NOT_A_FILE, PATH, is_code_name
from codecompanion.context.strategy_parameters import VerifySummary
from codecompanion.context.summary_text.quote_user_messages import is_given
from codecompanion.context.summary_text.sections import lines_and_fences
from codecompanion.context.work import Env, Outcome, Work
from codecompanion.formats.regex import regex
from codecompanion.placeholders import UNVERIFIED

_LISTED = 20
_MARK_BEGINS = f" {UNVERIFIED[:-1]}"
_MARK = regex(rf"{re.escape(UNVERIFIED[:-1])}(?:: [^)\n]*)?\)")
_COUNTED = regex(rf"(?<!\d)(?<!\d[.,_]){NUMBER.pattern}(?P<unit>[A-Za-z]{{0,3}})(?![A-Za-z0-9_$])")
_VERSION = regex(r"(?<!\d)\d+(?:\.\d+){2,}")
_STATUS_CODES = regex(r"[1-5]\d\ds")
_CODE = regex(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_URL = regex(r"\bhttps?://[^\s<>()\[\]\"'`]+(?<![.,;:!?*_])")
_ORDINAL = regex(r"\s*(?:[-*+>]\s+)*(?:#{1,6}\s+)?(?:\*\*|__)?\d{1,3}[.)]\s")
_ESCAPED = regex(r"\\(?=[_*`$#.-])")
# Well-known names and language keywords that may be mentioned without having been seen.
_COMMON = frozenset(
    """JavaScript TypeScript GitHub GitLab OpenAI PostgreSQL MySQL SQLite NumPy PyTorch TensorFlow NodeJS LaTeX YouTube
    VSCode macOS iOS PyPI MapReduce WebSocket WebSockets DevOps PowerShell LuaJIT ChatGPT utf8 UTF8 base64 Base64 sha256
    SHA256 SHA1 MD5 md5 i18n l10n IPv4 IPv6 HTTP2 OAuth OAuth2 GraphQL FastAPI python3 Python3
    True False None null nil true false undefined self this void async await return import class def function const
    let var int str bool float list dict set tuple string number object""".split()
)


def verify_summary(work: Work, params: VerifySummary, env: Env) -> Outcome:
    """Return the work with unknown names marked; `details` contains the numbers of checked and unverified names."""
    if not work.summary or work.details.written_by == "code":
        return work
    if is_given(work) and not params.also_given:
        return work
    text, names, missing = mark_unverified(work.summary, env.folds.get(KnownNames).of(work.before))
    listed = tuple(missing[:_LISTED]) or None
    said = work.with_details(names=names, unverified=len(missing), unverified_names=listed)
    return msgspec.structs.replace(said, summary=text)


def mark_unverified(text: str, known: Known) -> tuple[str, int, list[str]]:
    """Return the marked text, the number of distinct names checked, and the unknown names in order."""
    checker = _Checker(known)
    lines = lines_and_fences(text)
    out: list[str] = []
    planned = planned_files([line for line, _ in lines])
    for place, (line, fence) in enumerate(lines):
        checker.planned = planned[place]
        out.append(line if fence or _MARK.match(line) else checker.mark_line(line))
        following = lines[place + 1] if place + 1 < len(lines) else ("", 0)
        if fence and following[1] != fence and not _MARK.match(following[0]):
            inside = [at for at, (_, number) in enumerate(lines[: place + 1]) if number == fence]
            checker.planned = planned[inside[-1]]
            code = "".join(lines[at][0] for at in inside).split("\n", 1)[-1]
            out.append(checker.line_below(code, line))
    return "".join(out), len(checker.looked_up), list(checker.missing)


class _Checker:
    """Looks up names and records the unknown ones."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.looked_up: set[str] = set()
        self.missing: dict[str, None] = {}
        self.planned: frozenset[str] = frozenset()

    def mark_line(self, line: str) -> str:
        """Return a line of prose with each unknown name marked."""
        ordinal = _ORDINAL.match(line)
        done = ordinal.end() if ordinal else 0
        out = [line[:done]]
        for code in _CODE.finditer(line, done):
            out += [self._mark_prose(line[done : code.start()]), code.group()]
            if not line.startswith(_MARK_BEGINS, code.end()):
                out.append(self._mark_behind(code.group(2)))
            done = code.end()
        return "".join([*out, self._mark_prose(line[done:])])

    def line_below(self, code: str, last: str) -> str:
        """Return a line that lists the unknown names of a code block, to be placed below it, or ""."""
        missing = list(dict.fromkeys(name for name, _ in self._found_in(code) if not self._knows(name)))
        if not missing:
            return ""
        return f"{'' if last.endswith(chr(10)) else chr(10)}{UNVERIFIED[:-1]}: {', '.join(missing)})\n"

    def _mark_behind(self, code: str) -> str:
        """Return the mark to place after a span in backticks, or "" if all its names are known."""
        found = [name for name, _ in self._found_in(code)]
        words = [
            word for word in WORD.findall(code) if _is_quoted_name(word) and not any(word in name for name in found)
        ]
        missing = [name for name in dict.fromkeys([*found, *words]) if not self._knows(name)]
        if not missing:
            return ""
        return f" {UNVERIFIED}" if missing == [code.strip("().:;, ")] else f"{_MARK_BEGINS}: {', '.join(missing)})"

    def _mark_prose(self, text: str) -> str:
        """Return prose outside backticks with a mark after each unknown name."""
        out: list[str] = []
        done = 0
        marks = [mark.span() for mark in _MARK.finditer(text)]
        for name, end in self._found_in(text):
            if any(start < end < stop for start, stop in marks) or text.startswith(_MARK_BEGINS, end):
                continue
            if not self._knows(name):
                out += [text[done:end], f" {UNVERIFIED}"]
                done = end
        return "".join([*out, text[done:]])

    def _found_in(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield every path, identifier and number of the text with its end offset, without overlaps."""
        plain, places = _unescape(text)
        found = [(m.start(), m.end(), m.group()) for form in (_URL, PATH, PLACE) for m in form.finditer(plain)]
        found += [
            (m.start(), m.end(), m.group()[: len(m.group()) - len(m["unit"])])
            for m in _COUNTED.finditer(plain)
            if _stands_alone(plain, m.start()) and _is_checked(m)
        ]
        found += [(m.start(), m.end(), m.group()) for m in WORD.finditer(plain) if _is_name(m.group())]
        done = 0
        for start, end, name in sorted(found, key=lambda item: (item[0], -item[1])):
            if start >= done:
                yield name, places[end] if places else end
                done = end

    def _knows(self, name: str) -> bool:
        """Return whether the name occurs in the history."""
        if name in NOT_A_FILE or name in self.planned:
            return True
        self.looked_up.add(name)
        if NUMBER.fullmatch(name):
            known = self.known.has_number(name)
        elif WORD.fullmatch(name):
            known = self.known.has_word(name)
        else:
            known = self.known.has_path(name)
        if not known:
            self.missing.setdefault(name)
        return known


def _unescape(text: str) -> tuple[str, list[int]]:
    """Return the text without Markdown's backslashes, and the original index of each character ([] if unchanged)."""
    if "\\" not in text:
        return text, []
    gone = {match.start() for match in _ESCAPED.finditer(text)}
    kept = [place for place in range(len(text)) if place not in gone]
    return "".join(text[place] for place in kept), [*kept, len(text)]


def _is_name(word: str) -> bool:
    """Return whether the word can only be an identifier or a hash; `_word_` is emphasis."""
    if word.startswith("_") and word.endswith("_") and not word.startswith("__"):
        word = word.strip("_")
    return len(word) > 2 and word not in _COMMON and (is_code_name(word) or is_hash(word))


def _is_quoted_name(word: str) -> bool:
    """Return whether a word in backticks is a name."""
    return word.isidentifier() and len(word) > 2 and word not in _COMMON


def _is_checked(number: re.Match[str]) -> bool:
    """Return whether to check a number: yes for versions and measurements, no for plain numbers and status codes."""
    if _VERSION.fullmatch(number.group()):
        return True
    return bool(number["unit"]) and not _STATUS_CODES.fullmatch(number.group())


def _stands_alone(text: str, start: int) -> bool:
    """Return whether the digits are a separate number rather than part of a word or a longer number."""
    before = text[start - 1] if start else " "
    return not (before.isalnum() or before in "_$") and not (before in ".,_" and text[start - 2 : start - 1].isdigit())
