"""Finds the goal of a session: the first substantial request, until the user states a new one (R-319).

"continue", thanks, greetings, questions about the time and compaction prompts are not requests. A message that only
sets rules is the goal until there is a better one. The stored one-line text is evaluated, so that a goal carried over
is judged like a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache

from codecompanion.context.ledger.lines import cut_bytes
from codecompanion.context.message_facts.demands import asks_for_no_work, sentences
from codecompanion.context.message_facts.noise import is_noise
from codecompanion.formats.regex import regex

_STEER = (
    r"(?:please|ok(?:ay)?|y(?:es|ep|eah)?|sure|right|fine|good|great|perfect|nice|cool|wow|thanks?(?: you)?|thx|ty"
    r"|cheers|(?:very|so) much|a lot|well done|continue|go on|go ahead|keep going|carry on|proceed|next|resume"
    r"|try again|again|retry|(?:just )?do (?:it|that|this|the work)|finish (?:it|up)|what(?:'s| is) next|lgtm|no|then"
    r"|now|with (?:it|that|this|the work)|working|weiter|ja|danke|merci|gracias|grazie|obrigad[oa]|спасибо|谢谢|继续"
    r"|ありがとう)"
)
_STEERING = regex(rf"{_STEER}(?:[ ,.!]+{_STEER})*[ ,.!…]*", re.IGNORECASE)
_META = regex(
    r"\s*(?:/compact\b|/continue\b|compaction summary:|below is a summary of|"
    r"(?:please\s+)?(?:summari[sz]e|compact|condense)\s+(?:(?:this|the|our|all)\s+)?(?:conversation|chat|history|session))",
    re.IGNORECASE,
)
_FILLER = r"(?:(?:so|and|oh|hey|hi|hello|ok(?:ay)?|well|by the way|btw|quick question|one (?:more )?question)[ ,:]+)*"
_SMALL_TALK = regex(
    rf"{_FILLER}(?:"
    r"(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|привет|你好|こんにちは|good (?:morning|afternoon|evening|day|night)"
    r"|greetings)(?: (?:there|again|all|everyone|everybody|friend|claude|gpt|assistant))?"
    r"|how are (?:you|things)(?: (?:doing|today))*|how(?:'s| is) it going|what(?:'s| is) up|nice to (?:meet|see) you"
    r"|(?:good)?bye|see you(?: (?:later|soon|tomorrow))?|until (?:later|tomorrow)|(?:have a )?(?:nice|good) (?:day"
    r"|evening|weekend|one)|who are you|what can you do|are you (?:there|ready|ok(?:ay)?|done)|(?:i|we) (?:want|would"
    r" like) to thank you\b.{0,60}"
    r"|(?:(?:do|can|could) you (?:know|tell me) )?(?:what|which)(?:'s| is| was)?(?: the)?(?: current| local| exact)?"
    r" (?:time|date|day|weekday|week|month|year|weather)(?: (?:is|it|today|now|right|like|in \w+|here|of day))*"
    r"|how (?:long|much (?:time|longer)) (?:will|has|have|did|is|until|till)\b.{0,40}|how late is it"
    r"|when (?:will|are) you (?:be )?(?:done|finished|ready)|wie spät ist es|wie viel uhr.{0,20}|quelle heure.{0,20}"
    r"|qu[eé] hora.{0,20}|现在几点.{0,4}"
    r")[ ,.!?？…]*",
    re.IGNORECASE,
)
_LEAD = (
    r"(?:(?:ok(?:ay)?|now|so|then|next|well|please|instead|hi|hello|hey|actually|finally|from now on|new plan"
    r"|change of plans?|great|thanks?|good)[ ,:!.]+)*"
)
GOAL_BYTES = 240
"""Maximum size of a goal, in bytes of UTF-8."""
_READ_CHARS = 10 * GOAL_BYTES
"""Maximum number of characters joined into one line before truncation."""
_NO_AIM = (
    r"(?!(?:it|that|them|no|not|nothing|this)\b|(?:you )?to (?:know|ask|thank|say|see|hear|understand|apologi[sz]e"
    r"|check|confirm|mention|point|note|go|leave|continue|wait|stop|be|never|always|not|only|use|keep|avoid)\b"
    r"|(?:a |some |more |your )*(?:help|time|break|coffee|minute|moment|explanation|answer|look)\b)"
)
_LABELLED = regex(
    r"(?:(?:new|our|my|the|your|overall|main|next|current|real) ){0,3}(?:goal|objective|aim|task|mission|ziel|aufgabe"
    r"|objectif|objetivo|obiettivo|цель|задача|目标|目標|任务)\**"
    r"(?: ?[:=：]\**|(?: is| ist)(?: now)? (?=to |that |an? ))"
    r"\s*\S",
    re.IGNORECASE,
)
_WISHED = regex(
    rf"{_LEAD}(?:(?:i|we)(?: really| now| just| also)* (?:want|wish for|(?:would|['’]d)(?: really)? (?:like|love))"
    rf" {_NO_AIM}\w|i(?: really| now| just| also)* need (?!to\b){_NO_AIM}\w"
    rf"|(?:i|we)['’]d(?: really)? (?:like|love) {_NO_AIM}\w"
    r"|let(?:['’]?s| us) (?:now |instead |start by )?(?:build|make|create|write|implement|design|develop|port|migrate"
    r"|rewrite|convert|replace|switch|move on|work on|set up|start (?:on|with|over))"
    r"(?:ing)? (?!(?:it|that|this|sure)\b)\S"
    r"|(?:forget|drop|never mind) (?:about )?(?:that|it|this|the)\b"
    r"|ich (?:will|möchte|brauche) (?!nicht|nie|kein)|je (?:veux|voudrais) |quiero |necesito |(?:eu )?(?:quero|preciso)"
    r" |(?:voglio|vorrei) |я хочу |мне нужн\w+ |我(?:想|要|需要))",
    re.IGNORECASE,
)
_MAY_STATE = regex(
    r"goal|objective|aim|task|mission|ziel|aufgabe|objectif|objetivo|obiettivo|цель|задача|目标|目標|任务|want|need|wish"
    r"|would|['’]d |let['’]?s |let us |forget|drop|never mind|ich (?:will|möchte|brauche)|je (?:veux|voudrais)|quiero"
    r"|necesito|quero|preciso|voglio|vorrei|хочу|нужн|我(?:想|要|需要)",
    re.IGNORECASE,
)
"""Matches at least one word of every stated goal, so that messages without a match need no closer check."""


class Weight(IntEnum):
    """How strongly a message states the goal of the session."""

    NOTHING = 0
    RULES = 1
    REQUEST = 2
    STATED = 3


def is_usable_goal(text: str) -> bool:
    """Return whether the text states a request rather than steering, small talk, or a compaction prompt."""
    return weigh(text) > Weight.NOTHING


def goal_of(text: str) -> str:
    """Return the goal in a message on one line: the whole text, or the part that begins with the stated goal."""
    whole = cut_bytes(text[:_READ_CHARS], GOAL_BYTES)
    said = list(sentences(text))
    stated = next((place for place, sentence in enumerate(said) if _states_goal(sentence)), None)
    if stated is None or weigh(whole) == Weight.STATED:
        return whole
    return cut_bytes(" ".join(said[stated:]), GOAL_BYTES)


def better_goal(older: str, newer: str) -> str:
    """Return the newer goal if it is explicitly stated or weighs more than the older one, else the older (R-319)."""
    weight = weigh(newer)
    return newer if weight == Weight.STATED or weight > weigh(older) else older


def goal_of_all(texts: Iterable[str]) -> str:
    """Return the goal after these user messages, or "" if none states one."""
    goal = ""
    for text in texts:
        if weigh(goal) < Weight.REQUEST or _MAY_STATE.search(text):
            goal = better_goal(goal, goal_of(text))
    return goal


@lru_cache(1024)
def weigh(text: str) -> Weight:
    """Return how strongly the words state a goal; cached, because a goal is compared with every later message."""
    words = " ".join(text.split())
    if not words or _META.match(words) or is_noise(words):
        return Weight.NOTHING
    said = [sentence for sentence in sentences(text) if not _is_idle(sentence)]
    if any(map(_states_goal, said)):
        return Weight.STATED
    if not said:
        # Only code, or only quoted lines: the message is probably a request about them.
        return Weight.NOTHING if _is_idle(words) or any(sentences(text)) else Weight.REQUEST
    return Weight.RULES if all(map(asks_for_no_work, said)) else Weight.REQUEST


def _is_idle(sentence: str) -> bool:
    return _STEERING.fullmatch(sentence) is not None or _SMALL_TALK.fullmatch(sentence) is not None


def _states_goal(sentence: str) -> bool:
    return _LABELLED.match(sentence) is not None or _WISHED.match(sentence) is not None
