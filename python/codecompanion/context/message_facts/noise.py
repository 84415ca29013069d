"""Detects text that is never needed again: thanks, bare commands, pasted output, examples.

Noise is not quoted and does not count as a request. If in doubt, text is kept: a command with a sentence (`/ask how …`)
is not noise, and a name in an example counts once it occurs anywhere else.
"""

from __future__ import annotations

import re

from codecompanion.formats.regex import regex

_MAX_LENGTH = 400
_CHATTER = (
    r"(?:many\s+)?thanks?(?:\s+you)?(?:\s+(?:a lot|so much|very much|again))?"
    r"(?:\s+for\s+(?:all\s+)?(?:your|the)\s+(?:help|assistance|support))?(?:\s+today)?"
    r"|thx|ty|danke|merci|gracias|ok(?:ay)?|kk?"
    r"|great|perfect|cool|nice|awesome|wow|yay|lol|hi|hey|hello|yo|(?:good)?bye|ls|pwd|exit|quit|clear|\#+stop\#+"
    r"|have\s+a\s+(?:great|nice|good|wonderful)\s+(?:day|one|evening|weekend|trip|flight)"
    r"|that(?:['’]s|\s+is|\s+was|\s+will\s+be|\s+should\s+be)\s+(?:all|everything)(?:\s+(?:i|we)\s+need(?:ed)?"
    r"(?:\s+to\s+do)?(?:\s+help\s+with)?)?(?:\s+for)?(?:\s+(?:now|today))?"
)
_NOTHING_SAID = regex(rf"(?:{_CHATTER})(?:[\s.,!]+(?:{_CHATTER}))*[\s.!,:)👍]*", re.IGNORECASE)
_COMMAND_XML = regex(r"(?:<(?:command|local-command|bash)-[\w-]+>[^<]*</[\w-]+>\s*)+")
_COMMAND = regex(r"/[A-Za-z][\w-]*(?=\s|$)")
# Matches an ordinary word: not a path, option, name or number.
_WORD = regex(r"[A-Za-z][a-z']*[?.,!:]?")
_FOREIGN = regex(r"[^\x00-\x7f]")
_PROMPT = regex(r"(?:[$%❯➜#]\s|>>> |E {3,}\S|Traceback \(most recent|(?:~|/)\S*(?: \([^)\n]*\))?$)")
# Matches opening and closing marks of a demonstration or an example; an unclosed mark hides nothing.
_DEMONSTRATION_MARK = regex(
    r"^-{3,} ?(END OF )?(DEMONSTRATION) ?-{3,}$|<(/)?(examples?)>", re.MULTILINE | re.IGNORECASE
)
# Matches the words that open an example, the rest of the sentence, and the code block that follows.
_EXAMPLE = regex(
    r"(?:\b(?:for example|for instance|such as|imagine|suppose|something like|zum beispiel)\b|\be\.g\.|\bz\. ?B\.)"
    r"(?:[^\n.!?]|[.!?](?=\S))*(?:[.!?]|(?<=:)\s*^```.*?^```|$)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def is_noise(text: str) -> bool:
    """Return whether a message is never needed again: thanks, a bare command, or the XML of a command."""
    text = text.strip()
    if not text or len(text) > _MAX_LENGTH:
        return False
    if _NOTHING_SAID.fullmatch(text) or _COMMAND_XML.fullmatch(text):
        return True
    return all(_is_bare_command(line.strip()) for line in text.split("\n") if line.strip())


def _is_bare_command(line: str) -> bool:
    """Return whether a line is a command without a sentence: `/exit`, `/add src/a.py`, not `/ask how does it work`."""
    command = _COMMAND.match(line)
    if command is None or _FOREIGN.search(line):
        return False
    return _words(line[command.end() :]) < 2


def _words(text: str) -> int:
    """Return the number of ordinary words in a string; non-ASCII characters count as one each."""
    return sum(_WORD.fullmatch(word) is not None for word in text.split()) + len(_FOREIGN.findall(text))


def is_pasted(text: str) -> bool:
    """Return whether a message is pasted output that is not followed by the user's own words."""
    text = text.strip()
    return _PROMPT.match(text.partition("\n")[0]) is not None and not _ends_in_a_sentence(text)


def _ends_in_a_sentence(text: str) -> bool:
    """Return whether a paragraph by the user follows the pasted text."""
    _, gap, last = text[-2 * _MAX_LENGTH :].rpartition("\n\n")
    return bool(gap) and _words(last) >= 3


def without_examples(text: str) -> str:
    """Return a string without its examples, whose names do not belong to the actual work."""
    if "DEMONSTRATION" in text or "<example" in text:
        text = _without_demonstrations(text)
    return _EXAMPLE.sub("", text)


def _without_demonstrations(text: str) -> str:
    """Return a string without the spans between matching demonstration marks, in one pass."""
    marks = [(found, (found[2] or found[4]).upper()) for found in _DEMONSTRATION_MARK.finditer(text)]
    last_close = {kind: found.start() for found, kind in marks if found[1] or found[3]}
    kept, end, opened = [], 0, ""
    for found, kind in marks:
        closes = bool(found[1] or found[3])
        if closes and kind == opened:
            end, opened = found.end(), ""
        elif not opened and not closes and found.start() < last_close.get(kind, -1):
            kept.append(text[end : found.start()])
            opened = kind
    return "\n".join([*kept, text[end:]])
