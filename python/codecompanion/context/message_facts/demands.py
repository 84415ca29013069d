"""Finds the user's demands, prohibitions and rules, sentence by sentence and verbatim (R-314, lesson 10).

A demand uses words such as `never`, `must`, `keep`, `no … without`, or states a general rule in a short message ("Names
of files are in lower case."). Questions, reports and code do not count. A false positive costs a line of the summary, a
false negative the user's trust, so a doubtful sentence counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codecompanion.formats.regex import regex
from codecompanion.formats.sanitise import leave_out_orders

_SHORT_CHARS, _MAX_STATEMENT_LENGTH = 600, 200
"""Maximum lengths of a message, and of a plain statement in it, that may state a rule; longer texts are reports or
pasted.
"""
_READ_CHARS = 10_000
"""Number of characters read at each end of a message, because people write requests before or after pasted text."""

_FENCE = regex(r"```.*?(?:```|\Z)", re.DOTALL)
_END = regex(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)(?<!z\.B\.)\s+|(?<=[。！？])|\n+")
_BULLET = regex(r"^\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+|#+\s+)?")
_QUOTED_LINE = regex(
    r"^(?:[ \t]*(?:>|\||Traceback\b|\d{4}-\d\d-\d\d|\w*(?:Error|Exception):)|[ \t]+(?:at \S+ ?\(|File \")).*$",
    re.MULTILINE,
)

_STRICT = regex(
    r"\b(?:never|always|must(?:n['’]t)?|do not|don['’]?t|under no circumstances"
    r"|niemals|nie|immer(?! noch)|muss|müssen|musst|darf(?:st)? nicht|dürfen nicht|auf keinen fall"
    r"|jamais|toujours|doit|doivent|il faut|ne \w+ pas|nunca|jamás|siempre|debes?|deben|sempre|deve|devem|devono"
    r"|никогда|всегда|должн\w+|нельзя|обязательно)\b"
    r"|永远|绝不|从不|总是|始终|必须|务必|不要|不得|禁止|请勿|決して|必ず|常に|ないでください|てはいけ",
    re.IGNORECASE,
)
_WORDS = regex(
    r"\bwithout (?:any|asking|using|touching|changing|adding|breaking|my|permission|review|a)\b"
    r"|\b(?:only use|use only|only (?:in|on|for|with|when|if|after|through|from|what|where)|not allowed|forbidden"
    r"|off[- ]limits|required|mandatory|may not|should(?:n['’]t)?|shall|no more than|at (?:most|least) \w+"
    r"|make sure|makes? sure|ensure|from now on|avoid|prefer(?:s|red)?|instead of|rather than|stick to|untouched"
    r"|(?:before|after|with|in|for|on) (?:every|each)|before you|whenever|(?:every|each) time|by default|please not)\b"
    r"|\b(?:nur|ohne|keine?[nr]?|sollen?|sollte|vermeide|stattdessen|uniquement|seulement|évite[zr]?|только|избегай)\b"
    r"|只能|只用|保持|避免|一律|だけ",
    re.IGNORECASE,
)
_BEFORE = r"(?:(?:please|also|and|but|remember|note|important|rule|ok(?:ay)?|bitte|then)[ ,:]+)*"
# In ASCII text, every match of these patterns contains one of these words; searching for them takes a hundredth of the
# time.
_STRICT_HINTS = frozenset(
    b"never always must mustn do don dont under niemals nie immer muss musst darf darfst auf jamais toujours doit"
    b" doivent il ne nunca siempre debe debes deben sempre deve devem devono".split()
)
_WORDS_HINTS = frozenset(
    b"without only allowed forbidden limits required mandatory may should shouldn shall more most least sure ensure now"
    b" avoid prefer prefers preferred instead rather stick untouched every each before whenever default please nur ohne"
    b" kein keine keinn keinr keiner keinen solle sollen sollte vermeide stattdessen uniquement seulement".split()
)
_HINTS = _STRICT_HINTS | _WORDS_HINTS
_TO_WORDS = bytes(ord(letter.lower()) if letter == "_" or letter.isalnum() else 32 for letter in map(chr, range(256)))
_STANDING = regex(
    rf"{_BEFORE}(?:keep(?! going)|avoid|prefer|stick|stay|only|refrain|beware|remember|no(?! (?:idea|problem|worr|thank"
    r"|luck|way|that|it|this|i|you|we|one|the|errors?|output|more errors|change|longer|need)\b)) \S",
    re.IGNORECASE,
)
_ONE_MORE = regex(
    rf"{_BEFORE}(?:use|leave|ensure|follow|respect|preserve|limit|treat|mind|answer|reply|respond|ask) \S",
    re.IGNORECASE,
)
"""Matches openings shared by requests and rules."""
_GENERAL = regex(
    r"(?:the |our |my |all |every |each |any |no )?(?!(?:it|this|that|these|those|all (?:i|we|you)|there|here|he|she"
    r"|i|we|you|they|what|which|who|why|how|when|where|now|still|but|and|so|if|my|one|something|nothing|everything)\b)"
    r"[\w`'’./:-]+(?: [\w`'’./:-]+){0,6}? (?:is|are|stays?|remains?|has|have|goes?|go|lives?|belongs?|uses?|follows?"
    r"|starts? with|ends? (?:with|in)|comes? (?:first|last|before|after)|needs?|takes?) \S",
    re.IGNORECASE,
)
_REPORT = regex(
    r"\b(?:fail\w*|broke\w*|crash\w*|errors?|wrong|missing|bugs?|slow\w*|stuck|red|green|done|ready|fixed|finished"
    r"|complete[d]?|working|running|installed|weird|strange|odd|gone|empty|again|still|now|yet|already|just|there|here"
    r"|not|isn['’]t|aren['’]t|doesn['’]t|can['’]?not|can['’]t|hasn['’]t|haven['’]t|was|were|nice|good|great|fine)\b",
    re.IGNORECASE,
)
_TOLD = regex(
    r"\b(?:never|always) (?:works|worked|fails|failed|crash\w+|hangs|hung|returns|returned|ends|ended|gets|got|happens"
    r"|happened|been|was|were|had|did|seen|shows|showed|stops|stopped)\b"
    r"|\b(?:i|we|they) (?:do not|don['’]?t) (?:really )?(?:know|think|understand|see|care|mind|remember|recall|have|get"
    r"|believe)\b"
    r"|\b(?:do not|don['’]?t) (?:worry|bother|mind)\b|\bi must (?:say|admit)\b|\bmust have been\b"
    r"|\bwhy (?:do not|don['’]?t)\b|^(?:it|this|that|there) (?:should|must be)\b"
    r"|\bshould (?:work|be (?:fixed|fine|ok(?:ay)?|done|ready))(?: now| again)?\W*$",
    re.IGNORECASE,
)
_POLITE = regex(r"(?:please |can|could|would|will) you\b", re.IGNORECASE)


def find_demands(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct sentences of the user that demand something or state a rule, in order.

    Sentences that try to override a model's instructions are left out: they are never rules for the work.
    """
    found = dict.fromkeys(
        said
        for text in texts
        if len(text) <= _SHORT_CHARS or _has_hint(text, _HINTS)
        for said in sentences(text)
        if is_demand(said, len(text) <= _SHORT_CHARS)
    )
    return tuple(said for said in found if not leave_out_orders(said)[1])


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a typed message, without code, quoted lines and list markers."""
    if len(text) > 2 * _READ_CHARS:
        text = f"{text[:_READ_CHARS]}\n{text[-_READ_CHARS:]}"
    text = _FENCE.sub("\n", text) if "```" in text else text
    for said in _END.split(_QUOTED_LINE.sub("", text)):
        plain = _BULLET.sub("", said).strip(" \t*_")
        if plain:
            yield plain


def is_demand(sentence: str, in_short_message: bool = True) -> bool:
    """Return whether the sentence demands or forbids something, or states a general rule in a short message."""
    if sentence.endswith(("?", "？")) and not (_POLITE.match(sentence) and is_strict(sentence)):
        return False
    is_one = is_strict(sentence) or (_has_hint(sentence, _WORDS_HINTS) and _WORDS.search(sentence) is not None)
    if not is_one and in_short_message and len(sentence) <= _MAX_STATEMENT_LENGTH:
        is_one = bool(_STANDING.match(sentence) or _ONE_MORE.match(sentence)) or _is_general(sentence)
    return is_one and not _TOLD.search(sentence)


def _is_general(sentence: str) -> bool:
    return _GENERAL.match(sentence) is not None and not _REPORT.search(sentence)


def asks_for_no_work(sentence: str) -> bool:
    """Return whether the sentence is only a rule, unlike "Use msgspec in a.py", which may also be a request."""
    return is_demand(sentence) and not _ONE_MORE.match(sentence)


def is_strict(sentence: str) -> bool:
    """Return whether the sentence says never, must, always or do not, and so outranks all other demands (R-317)."""
    return _has_hint(sentence, _STRICT_HINTS) and _STRICT.search(sentence) is not None


def _has_hint(text: str, hints: frozenset[bytes]) -> bool:
    """Return whether the pattern with these hints may match the text; if False, it certainly does not match."""
    return not text.isascii() or not hints.isdisjoint(text.encode().translate(_TO_WORDS).split())
