"""`quote_user_messages`: what the user said stands in the summary because code copied it (R-431, lesson 11).

Every removed message that the human typed is quoted in order, head and tail of a long one; what earlier summaries
quoted is carried on. When the room is spent the oldest become one-line excerpts, and the oldest excerpts one line that
counts them: no message is ever dropped without a word. Quoted lines start with `>`, so that nothing a user says can be
taken for a heading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from codecompanion.context.noise import is_noise
from codecompanion.context.sections import Schema, guess_schema, parse_sections, replace_section
from codecompanion.context.transcript import shorten_middle
from codecompanion.context.work import Env, Messages, Outcome, Work
from codecompanion.messages import SUMMARY_TAG, ImagePart, Message, is_typed_by_user
from codecompanion.placeholders import LEDGER_HEADING, QUOTES_HEADING, REQUEST_HEADING

_LEFT_OUT = "- […] {count} older messages are not listed"
_LEFT_OUT_FORM = re.compile(r"- \[…\] (\d+) older messages are not listed")
_CLOSING_TAG = re.compile(r"\n</\w+>\s*\Z")
_NOTHING = frozenset({"none", "none."})
_SMALLEST_QUOTE = 24
_LEAST_BUDGET = 1000
_SHARE_OF_WINDOW = 8
_LEAST_ROOM = 60

Count = Callable[[str], int]


class QuoteUserMessages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters. A message is quoted in at most `max_chars`, an excerpt has `excerpt_chars`.

    All of them together have `share` (0..1) of the summary's budget, or `max_tokens` when that is not 0; never more
    than an eighth of the window, nor half of what the compaction frees. A text without sections that the caller gave
    stays as it is, unless `also_given`.
    """

    max_chars: int = 3000
    excerpt_chars: int = 120
    share: float = 0.4
    max_tokens: int = 0
    also_given: bool = False


class Quote(msgspec.Struct, frozen=True):
    """One message of the user: its words, or with `whole` false one line of them."""

    text: str
    whole: bool = True


class Quotes(msgspec.Struct, frozen=True):
    """What a summary tells of the user's messages, oldest first; `left_out` are counted only."""

    quotes: tuple[Quote, ...] = ()
    left_out: int = 0

    @property
    def total(self) -> int:
        """Return how many messages there were."""
        return len(self.quotes) + self.left_out


def quote_user_messages(work: Work, params: QuoteUserMessages, env: Env) -> Outcome:
    """Return the work with the user's messages in the summary as code copied them; `details` say how many and how."""
    said = gather_quotes(work.removed, params.max_chars)
    if not said.total or not work.summary or (is_given(work) and not params.also_given):
        return work
    base = int(work.details.get("summary_budget_tokens") or max(_LEAST_BUDGET, env.count_text(work.summary)))
    freed = env.measure(work.before).tokens - env.measure((*work.messages, *work.pending)).tokens
    most = min(env.window // _SHARE_OF_WINDOW, max(_LEAST_ROOM, (freed - env.count_text(work.summary)) // 2))
    room = min(params.max_tokens or int(base * params.share), most)
    kept = fit_quotes(said, room, params.excerpt_chars, env.count_text)
    details = {
        **work.details,
        "user_messages_quoted": sum(quote.whole for quote in kept.quotes),
        "user_messages_excerpted": sum(not quote.whole for quote in kept.quotes),
        "user_messages_left_out": kept.left_out,
    }
    summary = put_quotes(work.summary, "\n".join(render_quotes(kept)))
    return msgspec.structs.replace(work, summary=summary, details=details)


def is_given(work: Work) -> bool:
    """Return whether the summary is a caller's text in no known form: nothing is added to that."""
    return work.details.get("written_by") == "caller" and _section(work.summary) is None


def gather_quotes(removed: Messages | Sequence[Message], max_chars: int) -> Quotes:
    """Return what the human typed in the removed messages, and what an earlier summary among them quoted."""
    quotes: list[Quote] = []
    left_out = 0
    for message in removed:
        if message.tag == SUMMARY_TAG:
            earlier = read_quotes(message.text)
            quotes += earlier.quotes
            left_out += earlier.left_out
        elif is_typed_by_user(message) and not is_noise(message.text):
            quotes.append(Quote(shorten_middle(_words(message), max_chars)))
    return Quotes(tuple(quotes), left_out)


def _words(message: Message) -> str:
    """Return the message's text; pictures and documents by their names."""
    parts = () if isinstance(message.content, str) else message.content
    shown = [f"[image {part.path or part.mime}]" for part in parts if isinstance(part, ImagePart)]
    shown += [f"[document {part.path or part.mime}]" for part in message.documents]
    return "\n".join([*([message.text.strip("\n")] if message.text.strip() else []), *shown]) or "[empty message]"


def fit_quotes(said: Quotes, budget: int, excerpt_chars: int, count: Count) -> Quotes:
    """Return the quotes in at most `budget` tokens: the newest whole, older ones as excerpts, the oldest counted."""
    short = [_excerpt(quote, excerpt_chars) for quote in said.quotes]
    whole_sizes = [_size([quote], count) for quote in said.quotes]
    short_sizes = [_size([quote], count) for quote in short]
    left = budget - (count(_LEFT_OUT.format(count=said.total)) + 1 if said.left_out else 0) - sum(short_sizes)
    if left < 0:
        return _newest_excerpts(said, short, short_sizes, budget, count)
    first = len(short)
    while first > 0 and left + short_sizes[first - 1] - whole_sizes[first - 1] >= 0:
        first -= 1
        left += short_sizes[first] - whole_sizes[first]
    quotes = [*short[:first], *said.quotes[first:]]
    if first == len(short) and short:
        quotes[-1] = _shortened(said.quotes[-1], short[-1], left + short_sizes[-1], count)
    return Quotes(tuple(quotes), said.left_out)


def _newest_excerpts(said: Quotes, short: list[Quote], sizes: list[int], budget: int, count: Count) -> Quotes:
    """Return as many of the newest excerpts as fit; the others are counted."""
    left = budget - count(_LEFT_OUT.format(count=said.total)) - 1
    first = len(short)
    while first > 0 and left - sizes[first - 1] >= 0:
        first -= 1
        left -= sizes[first]
    return Quotes(tuple(short[first:]), said.left_out + first)


def _shortened(quote: Quote, excerpt: Quote, budget: int, count: Count) -> Quote:
    """Return head and tail of the newest message in what room there is; its excerpt when there is none."""
    chars = len(quote.text)
    while quote.whole and chars > _SMALLEST_QUOTE:
        chars = chars * 4 // 5
        shorter = Quote(shorten_middle(quote.text, chars))
        if len(shorter.text) > len(excerpt.text) and _size([shorter], count) <= budget:
            return shorter
    return excerpt


def _excerpt(quote: Quote, chars: int) -> Quote:
    """Return one line of the message; a message that is one short line stays whole."""
    line = " ".join(quote.text.split())
    if line == quote.text and len(line) <= chars:
        return quote
    return Quote(line if len(line) <= chars else line[: chars - 1].rstrip() + "…", whole=False)


def _size(quotes: list[Quote], count: Count) -> int:
    return count("\n".join(render_quotes(Quotes(tuple(quotes))))) + 2


def render_quotes(said: Quotes) -> list[str]:
    """Return the lines of the section: counted, excerpts as `- `, quotations as `> ` with an empty line between."""
    lines = [_LEFT_OUT.format(count=said.left_out)] if said.left_out else []
    for quote in said.quotes:
        if not quote.whole:
            lines.append(f"- {quote.text}")
            continue
        if lines:
            lines.append("")
        lines += [f"> {line}" if line else ">" for line in quote.text.split("\n")]
    return lines


def read_quotes(summary: str) -> Quotes:
    """Return the quotes of a summary's text; where a model wrote the list, its lines count as excerpts."""
    return parse_quotes(_quoted_part(summary).split("\n"))


def parse_quotes(lines: Iterable[str]) -> Quotes:
    """Return the quotes that `render_quotes` wrote as these lines; any other line is an excerpt."""
    quotes: list[Quote] = []
    left_out, open_quote = 0, False
    for line in lines:
        counted = _LEFT_OUT_FORM.fullmatch(line)
        if line.startswith(">"):
            words = line[2:] if line.startswith("> ") else line[1:]
            if open_quote:
                quotes[-1] = Quote(f"{quotes[-1].text}\n{words}")
            else:
                quotes.append(Quote(words))
        elif counted:
            left_out += int(counted.group(1))
        elif line.strip() and line.strip().casefold() not in _NOTHING:
            quotes.append(Quote(line.strip().removeprefix("- "), whole=False))
        open_quote = line.startswith(">")
    return Quotes(tuple(quotes), left_out)


def _quoted_part(summary: str) -> str:
    """Return the text below the heading of the user's messages, "" when there is none."""
    section = _section(summary)
    if section is not None:
        parts = parse_sections(summary, section[0]).parts
        return next((part.body.strip("\n") for part in parts if part.number == section[1]), "")
    _, heading, below = f"\n{summary}".partition(f"\n{QUOTES_HEADING}\n")
    for end in (LEDGER_HEADING, REQUEST_HEADING):
        below = below.partition(f"\n{end}")[0]
    return _CLOSING_TAG.sub("", below).strip("\n") if heading else ""


def put_quotes(summary: str, block: str) -> str:
    """Return the summary with the block as its section of user messages, below the text when it has no sections."""
    section = _section(summary)
    if section is not None:
        return replace_section(summary, *section, block)
    tail = parse_sections(summary).tail
    text = summary[: len(summary) - len(tail)].rstrip("\n")
    return f"{text}\n\n{QUOTES_HEADING}\n{block}".lstrip("\n") + (f"\n\n{tail}" if tail else "")


def _section(summary: str) -> tuple[Schema, int] | None:
    """Return the schema a summary is written in and its section of user messages, None when it has none."""
    schema = guess_schema(summary)
    number = schema.number_of("user_messages") if schema is not None else 0
    return (schema, number) if schema is not None and number else None
