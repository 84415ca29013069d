"""Finds plain English sentences that state decisions, constraints, blockers, warnings or plans (R-314, R-320).

The rules are data (`plain_sentences.toml`). Code, quoted text, questions, suppositions and reports of other people's
words are left out: a false fact in a summary misleads whichever model continues the work.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from codecompanion.context.message_facts.demands import sentences
from codecompanion.context.message_facts.noise import is_noise, is_pasted, without_examples
from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.formats.sanitise import leave_out_orders

Kind = Literal["constraint", "blocker", "warning", "decision", "deferred", "next"]
Speaker = Literal["user", "assistant"]

_TABLE = "context/message_facts/plain_sentences.toml"
_LENGTHS = range(10, 501)
"""Valid lengths of a sentence in characters: shorter texts state no fact, longer texts are not sentences."""
_BLOCK = regex(
    r"^~~~.*?(?:^~~~|\Z)"
    r"|<(output|result|tool_result|stdout|stderr|log|observation|pre|code|blockquote|file|context)>.*?(?:</\1>|\Z)",
    re.MULTILINE | re.DOTALL,
)
_INDENTED = regex(r"^(?: {4}|\t)(?![ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]).*$", re.MULTILINE)
_QUOTED = regex(r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|`[^`\n]{1,200}`|«[^»\n]{1,400}»|‘[^’\n]{1,200}’(?!\w)")
_WORD = regex(r"[a-z][a-z'-]*")


class Sentence(msgspec.Struct, frozen=True):
    """A verbatim sentence that states a fact about the work, and the rule that matched it."""

    kind: Kind
    text: str
    rule: str


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: Kind
    words: tuple[str, ...]
    pattern: str
    by: tuple[Speaker, ...] = ("user", "assistant")
    where: Literal["any", "last"] = "any"
    unless: str = ""


class _Idle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sentence: str
    before: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parts: dict[str, str]
    idle: _Idle
    rule: tuple[_Rule, ...]


class _Reader:
    """The compiled rules, indexed by the words that may trigger them."""

    def __init__(self, table: _Table) -> None:
        self._parts = table.parts
        self.rules = table.rule
        self.idle, self.before = self._compiled(table.idle.sentence), self._compiled(table.idle.before)
        self._patterns = [self._compiled(rule.pattern) for rule in table.rule]
        self._unless = [self._compiled(rule.unless) if rule.unless else None for rule in table.rule]
        self._by_word: dict[str, list[int]] = {}
        for place, rule in enumerate(table.rule):
            for word in rule.words:
                self._by_word.setdefault(word, []).append(place)

    def _compiled(self, text: str) -> re.Pattern[str]:
        while "<<" in text:
            text = re.sub(r"<<(\w+)>>", lambda found: self._parts[found[1]], text)
        return re.compile(text, re.IGNORECASE)

    def rule_of(self, sentence: str, by: Speaker, *, is_last: bool) -> _Rule | None:
        """Return the first rule that matches the sentence."""
        words = set(_WORD.findall(sentence.lower().replace("’", "'")))
        for place in sorted({place for word in words for place in self._by_word.get(word, ())}):
            rule = self.rules[place]
            if by not in rule.by or (by == "assistant" and rule.where == "last" and not is_last):
                continue
            found = self._patterns[place].search(sentence)
            if found is None or self.before.search(sentence, 0, found.start()):
                continue
            unless = self._unless[place]
            if unless is None or not unless.search(sentence):
                return rule
        return None


@lru_cache(1)
def _reader() -> _Reader:
    return _Reader(typed.convert(package_table(_TABLE), _Table))


def facts_of_sentences(
    text: str, by: Speaker, *, is_last: bool, known: Container[str] = frozenset()
) -> Iterator[Sentence]:
    """Yield the sentences of a message that state a fact, in order, without those that are `known`.

    `is_last`: this is the assistant's last text in the turn.
    """
    if is_noise(text) or (by == "user" and is_pasted(text)):
        return
    reader = _reader()
    prose = _INDENTED.sub("", _BLOCK.sub("\n", without_examples(text))).replace("**", "")
    for said in sentences(prose):
        if len(said) not in _LENGTHS or said in known or is_idle(said):
            continue
        masked = _QUOTED.sub(lambda found: "x" * len(found[0]), said)
        rule = reader.rule_of(masked, by, is_last=is_last)
        if rule is not None and not leave_out_orders(said)[1]:
            yield Sentence(rule.kind, said, rule.name)


def is_idle(sentence: str) -> bool:
    """Return whether the sentence is a question or a supposition, and therefore not a fact."""
    return sentence.rstrip(" *_)\"'”").endswith("?") or _reader().idle.search(sentence) is not None
