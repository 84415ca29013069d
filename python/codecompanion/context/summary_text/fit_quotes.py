"""Fits the quotes of the user's messages into the available room: in full, as excerpts, or only counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, chain

from codecompanion.context.message_facts.demands import find_demands, is_strict
from codecompanion.context.message_facts.noise import is_noise
from codecompanion.context.summary_text.place_quotes import read_quotes
from codecompanion.context.summary_text.quote_lines import Quote, Quotes, joined, left_out_line, render_quotes
from codecompanion.context.summary_text.recall_keys import Span, no_key, span_of
from codecompanion.context.work import Messages
from codecompanion.formats.cutting import ELLIPSIS, cut_line, cut_middle
from codecompanion.model.messages import SUMMARY_TAG, ImagePart, Message, is_typed_by_user

_SMALLEST_QUOTE = 24
_MAX_EXCERPTS = 4
"""Maximum length of an excerpt with demands, as a multiple of the length of other excerpts."""

Count = Callable[[str], int]


def gather_quotes(
    removed: Messages | Sequence[Message], max_chars: int, key_of: Callable[[str], str] = no_key
) -> Quotes:
    """Return the user's typed text in the removed messages, and the quotes of earlier summaries among them."""
    quotes: list[Quote] = []
    left_out = 0
    left_keys: Span | None = None
    for message in removed:
        if message.tag == SUMMARY_TAG:
            earlier = read_quotes(message.text)
            quotes += earlier.quotes
            left_out += earlier.left_out
            left_keys = joined(left_keys, earlier.left_keys)
        elif is_typed_by_user(message) and not is_noise(message.text):
            quotes.append(Quote(cut_middle(_words(message), max_chars), key=key_of(message.id)))
    return Quotes(tuple(quotes), left_out, left_keys)


def _words(message: Message) -> str:
    """Return the message's text, with images and documents represented by their names."""
    parts = () if isinstance(message.content, str) else message.content
    shown = [f"[image {part.path or part.mime}]" for part in parts if isinstance(part, ImagePart)]
    shown += [f"[document {part.path or part.mime}]" for part in message.documents]
    return "\n".join([*([message.text.strip("\n")] if message.text.strip() else []), *shown]) or "[empty message]"


class QuoteFacts:
    """Caches each quote's size and the user's demands in it while a summary is written.

    Values not known yet are computed on request.
    """

    def __init__(self) -> None:
        self._removed: Sequence[Message] = ()
        self._said, self._max_chars = Quotes(), 0
        self._read: tuple[int, int] | None = None
        self._sizes = dict[Quote, int]()
        self._demands = dict[str, tuple[str, ...]]()

    def quotes(self, removed: Sequence[Message], max_chars: int, key_of: Callable[[str], str]) -> Quotes:
        """Return the cached result of `gather_quotes`; `key_of` must not change between calls."""
        if (self._removed, self._max_chars) != (removed, max_chars):
            self._said, self._read = gather_quotes(removed, max_chars, key_of), None
            self._removed, self._max_chars = removed, max_chars
        return self._said

    def size(self, quote: Quote, count: Count) -> int:
        """Return the token count of the quote as rendered; `count` must not change between calls."""
        if quote not in self._sizes:
            self._sizes[quote] = _size([quote], count)
        return self._sizes[quote]

    def demands(self, text: str) -> tuple[str, ...]:
        """Return the user's demands in the text."""
        if text not in self._demands:
            self._demands[text] = _demands_of(text)
        return self._demands[text]

    def read(self, said: Quotes, most: int, excerpt_chars: int, count: Count, pause: Callable[[], None]) -> None:
        """Compute the values that `fit_quotes` needs with a budget of up to `most`; `pause` is called repeatedly.

        Quotes gathered here are read only once, although each part of a long history asks for them.
        """
        if said is self._said and self._read == (most, excerpt_chars):
            return
        for quote in said.quotes:
            self.demands(quote.text)
            pause()

        def counted(text: str) -> int:
            pause()
            return count(text)

        fit_quotes(said, most, excerpt_chars, counted, self)
        self._read = (most, excerpt_chars) if said is self._said else None


class _Sizes:
    """The sizes of quotes, whole and as excerpts, each computed on request.

    In a long chat only the newest few fit, so the sizes of the others are not needed.
    """

    def __init__(
        self, quotes: Sequence[Quote], wanted: Sequence[tuple[str, ...]], chars: int, count: Count, facts: QuoteFacts
    ) -> None:
        self._quotes, self._wanted, self._chars, self._count, self._facts = quotes, wanted, chars, count, facts
        self._short, self._short_sizes = dict[int, Quote](), dict[int, int]()

    def whole(self, place: int) -> int:
        """Return the token count of the quote at this index."""
        return self._facts.size(self._quotes[place], self._count)

    def short(self, place: int) -> int:
        """Return the token count of the excerpt at this index."""
        if place not in self._short_sizes:
            self._short_sizes[place] = self._facts.size(self.excerpt(place), self._count)
        return self._short_sizes[place]

    def excerpt(self, place: int) -> Quote:
        """Return the excerpt of the quote at this index."""
        if place not in self._short:
            self._short[place] = _excerpt(self._quotes[place], self._chars, self._wanted[place])
        return self._short[place]

    def shorten(self, place: int, chars: int) -> None:
        """Shorten the excerpt at this index."""
        self._short[place] = _excerpt(self._quotes[place], chars, self._wanted[place])
        self._short_sizes[place] = _size([self._short[place]], self._count)


def _is_more(sizes: Iterable[int], room: int) -> bool:
    """Return whether the sizes (none negative) exceed the room, reading no more of them than necessary."""
    return any(total > room for total in accumulate(sizes, initial=0))


def fit_quotes(said: Quotes, budget: int, excerpt_chars: int, count: Count, facts: QuoteFacts | None = None) -> Quotes:
    """Return the quotes in at most `budget` tokens, preferring valuable ones if there is too little room.

    First comes the newest message, where the work continues; then messages with demands, verbatim within most of the
    room, strict demands first; then the newest of the others. The rest become excerpts, except that the oldest without
    demands are only counted.
    """
    facts, number = facts or QuoteFacts(), len(said.quotes)
    room = budget - (_size_left_out(said, count) if said.left_out else 0)
    if not number or not _is_more((facts.size(quote, count) for quote in reversed(said.quotes)), room):
        return said
    wanted = [facts.demands(quote.text) for quote in said.quotes]
    sizes = _Sizes(said.quotes, wanted, excerpt_chars, count, facts)
    ranks = list(map(_rank, wanted))
    newest, others = number - 1, [i for i in reversed(range(number - 1)) if not ranks[i]]
    demands = sorted((i for i in range(number - 1) if ranks[i]), key=lambda i: (ranks[i], i), reverse=True)
    for chars in (excerpt_chars // 2, excerpt_chars // 4):
        for i in demands if _is_more(map(sizes.short, demands), room // 2) else ():
            sizes.shorten(i, chars)
    if _is_more(chain(map(sizes.whole, demands), map(sizes.short, (newest, *others))), room):
        all_keys = joined(said.left_keys, span_of([quote.key for quote in said.quotes]))
        room = budget - _size_left_out(Quotes(left_out=said.total, left_keys=all_keys), count)
    told = _ChosenQuotes(room, sizes)
    told.excerpts([newest, *demands], stop=False)
    told.whole(demands, leaving=budget // 8, stop=False)
    told.excerpts(others, stop=True)
    told.whole([newest, *(i for i in reversed(range(newest)) if i in told.size)], leaving=0, stop=True)
    quotes = {i: said.quotes[i] if size == sizes.whole(i) else sizes.excerpt(i) for i, size in told.size.items()}
    if newest in quotes and quotes[newest] is not said.quotes[newest]:
        left = told.left + sizes.short(newest)
        quotes[newest] = _shortened(said.quotes[newest], sizes.excerpt(newest), left, count)
    keys = span_of([quote.key for i, quote in enumerate(said.quotes) if i not in quotes])
    left_out = said.left_out + number - len(quotes)
    return Quotes(tuple(quotes[i] for i in sorted(quotes)), left_out, joined(said.left_keys, keys))


class _ChosenQuotes:
    """The chosen quotes, by index, with their token counts; `left` is the remaining room."""

    def __init__(self, room: int, sizes: _Sizes) -> None:
        self.left, self.size = room, dict[int, int]()
        self._sizes = sizes

    def excerpts(self, places: Iterable[int], *, stop: bool) -> None:
        """Add these quotes as excerpts, skipping any that do not fit.

        With `stop`, end at the first that does not fit.
        """
        self._take(places, self._sizes.short, 0, stop)

    def whole(self, places: Iterable[int], *, leaving: int, stop: bool) -> None:
        """Expand these excerpts to full quotes, as long as `leaving` tokens are left."""
        self._take((i for i in places if i in self.size), self._sizes.whole, leaving, stop)

    def _take(self, places: Iterable[int], size_of: Callable[[int], int], leaving: int, stop: bool) -> None:
        for place in places:
            size = size_of(place)
            more = size - self.size.get(place, 0)
            if more > 0 and self.left - more < leaving:
                if stop:
                    return
                continue
            self.size[place] = size
            self.left -= more


@lru_cache(maxsize=2048)
def _demands_of(text: str) -> tuple[str, ...]:
    """Return the demands of one message; cached, because a summary is written for several sizes."""
    return find_demands([text])


def demands_something(text: str) -> bool:
    """Return whether the user demands something in a message, or sets a rule."""
    return bool(_demands_of(text))


def _rank(demands: tuple[str, ...]) -> int:
    """Return 2 for a message with a strict demand, 1 for one with another demand, and 0 for one without."""
    return bool(demands) + any(map(is_strict, demands))


def _size_left_out(said: Quotes, count: Count) -> int:
    return count(left_out_line(Quotes(left_out=said.total, left_keys=said.left_keys))) + 1


def _shortened(quote: Quote, excerpt: Quote, budget: int, count: Count) -> Quote:
    """Return head and tail of the newest message in the available room, or its excerpt if there is none."""
    chars = len(quote.text)
    while quote.whole and chars > _SMALLEST_QUOTE:
        chars = chars * 4 // 5
        shorter = Quote(cut_middle(quote.text, chars), key=quote.key)
        if len(shorter.text) > len(excerpt.text) and _size([shorter], count) <= budget:
            return shorter
    return excerpt


def excerpt_of(quote: Quote, chars: int) -> Quote:
    """Return a one-line excerpt of the message that includes the user's requirements."""
    return _excerpt(quote, chars, _demands_of(quote.text))


def _excerpt(quote: Quote, chars: int, demands: tuple[str, ...]) -> Quote:
    """Return a one-line excerpt of the message that includes the demands; a short one-line message stays whole."""
    line = " ".join(quote.text.split())
    if line == quote.text and len(line) <= chars:
        return quote
    if len(line) <= chars:
        return Quote(line, whole=False, key=quote.key)
    head = cut_line(line, chars)
    for demand in sorted(demands, key=is_strict, reverse=True):
        said = " ".join(demand.split())
        if said in head or len(head) + len(said) >= _MAX_EXCERPTS * chars:
            continue
        beginning, start = head.removesuffix(ELLIPSIS), line.find(said)
        if line.startswith(beginning) and 0 <= start < len(beginning):
            head = cut_line(line, start + len(said) + len(ELLIPSIS))  # the demand was truncated
        else:
            head = f"{head} {said}"
    return Quote(head, whole=False, key=quote.key)


def _size(quotes: list[Quote], count: Count) -> int:
    return count("\n".join(render_quotes(Quotes(tuple(quotes))))) + 2
