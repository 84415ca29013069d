"""S12 `summarize_raw`: if there is no summary by a model, uses the removed messages, cut to a summary's size (R-434).

It needs no call and does not fail. The user, the assistant, tools and an earlier summary get fair shares of the budget,
and unused room goes to the others. The user's words are quoted (R-431) and not repeated elsewhere. The assistant's
decisions take precedence over its other text. An earlier summary stays first; the entries of an earlier raw text are
parsed again, so that a second failure frees as much as the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, takewhile

import msgspec

from codecompanion.context.ledger.facts import decisions_in
from codecompanion.context.message_facts.plain_sentences import facts_of_sentences
from codecompanion.context.strategy_parameters import EXCERPT_CHARS, Caps, SummarizeOne, SummarizeRaw
from codecompanion.context.summary.fit_summary import level
from codecompanion.context.summary.summarize_one import summary_budget
from codecompanion.context.summary_text.fit_quotes import QuoteFacts, fit_quotes
from codecompanion.context.summary_text.place_quotes import put_quotes, take_quotes
from codecompanion.context.summary_text.quote_lines import Quotes, render_quotes
from codecompanion.context.summary_text.recall_keys import without_keys
from codecompanion.context.transcript.format_transcript import format_lines
from codecompanion.context.work import Env, Messages, Outcome, Skipped, Work
from codecompanion.formats.cutting import cut_line, cut_middle_or_tail
from codecompanion.formats.regex import regex
from codecompanion.model.messages import LOOKING_TAG, STARTING_TAGS, SUMMARY_TAG, is_typed_by_user
from codecompanion.placeholders import QUOTES_HEADING, RAW_HEADING
from codecompanion.summary_frame import split_frame

_CAPS = Caps(user=3000, tool=1200, call=800)
_SPOKEN_CHARS = 1500
"""Maximum characters of an entry (R-436); an assistant message is cut after its decisions have been read."""
_LEFT_OUT = "[entries left out: {count}]"
_LEFT_OUT_FORM = regex(r"^\[entries left out: (\d+)\]\n", re.MULTILINE)
_ENTRY = regex(r"^(?=\[(?:user|assistant|tool|system)\] )", re.MULTILINE)
_TURN = regex(r"^--- Turn \d+ ---\n?", re.MULTILINE)
_INDENT = "    "
"""Prefix of an entry's continuation lines, so that none of them can be a heading of the summary."""
_LABELLED = regex(
    r"^[^\w\n]*(?:decisions?|decided|constraints?|next(?: steps?)?|todo|blocked|blockers?|warnings?)\W*:.+$",
    re.IGNORECASE | re.MULTILINE,
)
_READ_CHARS = 300_000
"""Maximum characters of the newest assistant messages to search for decisions; the search takes a third of a second."""
_SHORT_CHARS, _DECISIONS_CHARS = 120, 300

Count = Callable[[str], int]


def summarize_raw(work: Work, params: SummarizeRaw, env: Env) -> Outcome:
    """Return the work with the shortened messages as its summary."""
    if not work.removed:
        return Skipped("nothing_to_summarise", "nothing to summarise yet")
    formula = SummarizeOne(
        max_tokens=params.max_tokens,
        min_tokens=params.min_tokens,
        share_of_available=params.share_of_available,
    )
    removed = env.size(work.removed)
    budget = max(1, min(summary_budget(work, formula, env), int(removed * params.share_of_removed)))
    raw, room = _Raw(work.removed, params.max_quote_chars, env), budget * 3 // 2
    text = raw.within(room)
    # Shares are rarely used up, so begin with shares that are too large and reduce them until the text fits.
    while env.count_text(text) > budget and room > 1:
        room = room * 9 // 10
        text = raw.within(room)
    return msgspec.structs.replace(work.with_details(summary_budget_tokens=budget, written_by="code"), summary=text)


class _Raw:
    """The usable parts of the removed messages: quotes, an earlier summary, entries of the assistant and of tools."""

    def __init__(self, removed: Messages, max_quote_chars: int, env: Env) -> None:
        self._count, self._facts = env.count_text, env.folds.get(QuoteFacts)
        self._env = env
        self._said = self._facts.quotes(removed, max_quote_chars, env.key_of)
        self._earlier, carried, self._left_out = _read_earlier(removed)
        entries = [*carried, *_entries(removed)]
        newest_first = range(len(entries) - 1, -1, -1)
        self._spoken = [place for place in newest_first if _is_spoken(entries[place])]
        self._done = [place for place in newest_first if not _is_spoken(entries[place])]
        read = accumulate(len(entries[place]) for place in self._spoken)
        searched = [place for place, chars in zip(self._spoken, read, strict=True) if chars <= _READ_CHARS]
        self._decided = {place: _decisions(entries[place]) for place in searched}
        spoken = frozenset(self._spoken)
        self._entries = [
            cut_middle_or_tail(entry, _SPOKEN_CHARS) if place in spoken else entry
            for place, entry in enumerate(entries)
        ]
        self._sizes = dict[str, int]()

    def within(self, tokens: int) -> str:
        """Return the text in about `tokens` tokens."""
        frame = "\n\n".join((QUOTES_HEADING, RAW_HEADING, _LEFT_OUT.format(count=9999)))
        room = max(0, tokens - self._size(frame))
        user, earlier, spoken, done = fair_shares(
            room,
            (
                _sum_up_to(room, (self._facts.size(quote, self._count) for quote in reversed(self._said.quotes))),
                self._size(self._earlier) if self._earlier else 0,
                _sum_up_to(room, (self._size(self._entries[place]) for place in self._spoken)),
                _sum_up_to(room, (self._size(self._entries[place]) for place in self._done)),
            ),
        )
        kept = {**self._choose(self._spoken, spoken), **self._choose(self._done, done)}
        left_out = self._left_out + len(self._entries) - len(kept)
        lines = [RAW_HEADING, *([_LEFT_OUT.format(count=left_out)] if left_out else [])]
        lines += [kept[place].replace("\n", f"\n{_INDENT}") for place in sorted(kept)]
        text = "\n".join(lines)
        if self._earlier:
            shown = level(self._earlier, earlier, self._env)
            text = f"{shown}\n\n{text}"
        return self._with_quotes(text, user)

    def _with_quotes(self, text: str, tokens: int) -> str:
        if not self._said.total:
            return text
        kept: Quotes = fit_quotes(self._said, tokens, EXCERPT_CHARS, self._count, self._facts)
        return put_quotes(text, "\n".join(render_quotes(kept)))

    def _choose(self, places: list[int], tokens: int) -> dict[int, str]:
        """Return the entries that fit, by index: first decisions, then short forms, then the newest in full."""
        kept, left = dict[int, str](), tokens

        def take(place: int, text: str, leaving: int = 0) -> bool:
            nonlocal left
            more = self._size(text) - (self._size(kept[place]) if place in kept else 0)
            if left - more < leaving:
                return False
            kept[place] = text
            left -= more
            return True

        def take_all(wanted: Iterable[int], form: Callable[[int], str], leaving: int = 0) -> None:
            for place in wanted:
                if not take(place, form(place), leaving):
                    return

        take_all((place for place in places if self._decided.get(place)), self._short)
        take_all((place for place in places if place not in kept), self._short, leaving=left // 2)
        take_all((place for place in places if place in kept), self._entries.__getitem__)
        take_all((place for place in places if place not in kept), self._short)
        return kept

    def _short(self, place: int) -> str:
        """Return the decisions of an entry, or its beginning, on one line."""
        entry, decided = self._entries[place], self._decided.get(place, "")
        speaker, _, words = entry.partition("] ")
        short = cut_line(decided, _DECISIONS_CHARS) if decided else cut_line(words, _SHORT_CHARS)
        return min(f"{speaker}] {short}", entry, key=len)

    def _size(self, text: str) -> int:
        """Return the token count of a text including its line break."""
        if text not in self._sizes:
            self._sizes[text] = self._count(text) + 1
        return self._sizes[text]


def fair_shares(room: int, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Divide the room into equal shares; a share is smaller if less is wanted, which leaves more for the others.

    >>> fair_shares(90, (10, 100, 0, 100))
    (10, 40, 0, 40)
    """
    shares, left = [0] * len(wanted), len(wanted)
    for place in sorted(range(len(wanted)), key=lambda place: wanted[place]):
        shares[place] = min(wanted[place], room // left)
        room, left = room - shares[place], left - 1
    return tuple(shares)


def _sum_up_to(room: int, sizes: Iterable[int]) -> int:
    """Return the sum of the sizes, at most `room`, without reading more sizes than necessary."""
    return min(room, max((*takewhile(lambda total: total <= room, accumulate(sizes)), 0)) or room)


def _read_earlier(removed: Messages) -> tuple[str, list[str], int]:
    """Return an earlier summary without quotes, the entries of its raw text, and the count of omitted ones."""
    told, entries, left_out = list[str](), list[str](), 0
    for message in removed:
        if message.tag != SUMMARY_TAG:
            continue
        text, _ = take_quotes(without_keys(split_frame(message.text).summary))
        ahead, _, raw = f"\n{text}".partition(f"\n{RAW_HEADING}\n")
        told += [ahead.strip()] if ahead.strip() else []
        left_out += sum(int(number) for number in _LEFT_OUT_FORM.findall(raw))
        raw = _TURN.sub("", _LEFT_OUT_FORM.sub("", raw))
        # In raw text of earlier versions, the user's words are entries; now they are quoted.
        entries += [
            re.sub(f"^{_INDENT}", "", entry.rstrip("\n"), flags=re.MULTILINE)
            for entry in _ENTRY.split(raw)
            if _ENTRY.match(entry) and not entry.startswith("[user] ")
        ]
    return "\n\n".join(told), entries, left_out


def _entries(removed: Messages) -> Iterator[str]:
    """Yield the entries of the messages, one per text, call and result, except typed messages, which are quoted."""
    for message in removed:
        if message.tag in (*STARTING_TAGS, SUMMARY_TAG, LOOKING_TAG) or message.role == "system" or message.compacted:
            continue
        if not is_typed_by_user(message):
            (entry,) = format_lines((message,), _CAPS)
            parts = _ENTRY.split(_TURN.sub("", entry, count=1))
            yield from (part.rstrip("\n") for part in parts if part.strip())


def _is_spoken(entry: str) -> bool:
    return entry.startswith("[assistant] ") and not entry.startswith(("[assistant] TOOL_USE ", "[assistant] IMAGE "))


def _decisions(entry: str) -> str:
    """Return the assistant's sentences that state a decision, a finding, a blocker or a next step, in order."""
    words = entry.partition("] ")[2]
    told = dict.fromkeys(
        (
            *(line.strip() for line in _LABELLED.findall(words)),
            *decisions_in(words),
            *(fact.text for fact in facts_of_sentences(words, "assistant", is_last=True)),
        )
    )
    said = [one for one in told if not any(one != other and one in other for other in told)]
    return " ".join(sorted(said, key=words.find))
