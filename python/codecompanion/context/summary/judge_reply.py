"""Checks whether a model's reply is a summary, and extracts it (R-526, R-433; lessons 14, 15, 56).

Nothing else may replace a history: not `ok`, a refusal, an error passed off as an answer, the prompt's headings without
content, or text on another topic in any form (`topic_evidence`). Text written by code is accepted as is, and a
caller's text (`context --summary`) unless it is plainly not a summary: it may be short and in no known form. The
patterns of refusals are data (`prompts/refusals.toml`).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import msgspec

from codecompanion import prompts
from codecompanion.context.summary.topic_evidence import History, why_not_about
from codecompanion.context.summary_text.sections import (
    Schema,
    close_fence,
    form_of,
    guess_schema,
    lines_and_fences,
    parse_sections,
)
from codecompanion.context.work import Failed, SummaryReply
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.formats.sanitise import REMOVED

_ANALYSIS = regex(r"<analysis>.*?</analysis>", re.DOTALL | re.IGNORECASE)
_THINKING = regex(r"\A\s*<(think|thinking|reasoning)>(?:.*?</\1>|.*\Z)", re.DOTALL | re.IGNORECASE)
_SUMMARY = regex(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL | re.IGNORECASE)
_NOTHING = regex(r"\W*(?:none|n/a|nothing|keine?s?|nichts|aucune?|ninguno|нет|无|なし|없음)?\W*", re.IGNORECASE)
_LEADING_MARKS = regex(r"[\s*_#>`\"'“”„«»~-]+")
MIN_CHARS = 200
"""Minimum characters of a free-text summary, or a quarter of the history if that is less."""
_SHARE_OF_SHORT = 0.25
_HEAD_CHARS = 200
_ANNOUNCEMENT = 200


def accept_reply(
    reply: SummaryReply, schema: Schema | None = None, prompt: str = "", about: Sequence[str] = ()
) -> str | Failed:
    """Return the summary text without its private analysis, or `Failed` with the reason why the reply is rejected.

    `schema` is the requested form and `prompt` its wording (None: any text is accepted), `about` the strings that the
    summary must be about. If the reply is truncated, its complete sections are used if they form a summary. `again` is
    set in the failure if a retry may help.
    """
    failure = _find_failure(reply, schema)
    if failure is not None:
        return failure
    text = _stripped(reply.text)
    if isinstance(text, Failed) or reply.source == "code" or schema is None:
        return text
    if _is_refusal(text) and guess_schema(text) is None:
        return Failed("the summariser refused, asked a question or returned an error instead of a summary", again=True)
    if reply.source == "caller":
        return Failed(_acknowledgement_error(text)) if _is_acknowledgement(text) else text
    if reply.stop == "length":
        text = complete_sections(text, schema)
        if not text:
            return Failed("the summary was cut off by its output limit")
    obstacle = _rejection_reason(text, schema, prompt, about)
    if obstacle:
        return Failed(obstacle, again=reply.stop != "length")
    return in_order(text, schema) if schema.section else text


def _find_failure(reply: SummaryReply, schema: Schema | None) -> Failed | None:
    if reply.error:
        return Failed(reply.error)
    if reply.called_tools:
        return Failed("the summariser called a tool instead of writing a summary")
    if reply.stop == "length" and (schema is None or not schema.section or reply.source != "model"):
        return Failed("the summary was cut off by its output limit")
    if reply.stop not in ("stop", "length", ""):
        return Failed(f"the summariser ended early ({reply.stop})")
    return None


def _stripped(given: str) -> str | Failed:
    """Return the text without thinking, analysis and wrapper, because thinking is never the summary (lesson 15)."""
    text = _ANALYSIS.sub("", _THINKING.sub("", given))
    wrapped = _SUMMARY.search(text)
    if not wrapped and "<analysis>" in text.lower():
        return Failed("the summariser wrote only its analysis, no summary", again=True)
    text = _unfenced((wrapped.group(1) if wrapped else text).strip())
    if not text:
        only = "the summariser wrote only its thinking, no summary" if given.strip() else ""
        return Failed(only or "the summariser returned an empty summary", again=True)
    if _is_error_object(text):
        return Failed("the summariser returned an error text instead of a summary", again=True)
    return text


def _unfenced(text: str) -> str:
    """Return the text without a code fence around all of it."""
    lines = lines_and_fences(text)
    is_fenced = len(lines) > 2 and lines[0][1] and lines[0][1] == lines[-1][1]
    return "".join(line for line, _ in lines[1:-1]).strip() if is_fenced else text


def in_order(text: str, schema: Schema) -> str:
    """Return the text with its sections in numerical order: the prompt asks for important ones first (R-433)."""
    form = form_of(text, schema)
    if form is None or form.headings == "labels":
        return text
    found = parse_sections(text, form)
    numbers = [part.number for part in found.parts]
    if numbers == sorted(numbers):
        return text
    sorted_parts = sorted(found.parts, key=lambda part: part.number)
    body = "\n\n".join(part.text.strip("\n") for part in sorted_parts)
    return "\n\n".join(piece for piece in (found.preamble.strip("\n"), body, found.tail.strip("\n")) if piece)


def inside_form(text: str, schema: Schema) -> str:
    """Return the text with nothing before its first section: an announcement is dropped, longer text moves inside.

    The note about a removed instruction also moves inside, to explain the gap.
    """
    form = form_of(text, schema)
    found = parse_sections(text, form)
    said = found.preamble.strip()
    if not said or not found.parts or form is None or form.headings == "labels":
        return text
    first, *others = found.parts
    if len(said) > _ANNOUNCEMENT or REMOVED in said:
        body = f"{said}\n\n{first.body.strip()}".rstrip()
        first = msgspec.structs.replace(first, body=f"\n{body}\n\n")
    return msgspec.structs.replace(found, preamble="", parts=(first, *others)).text


def complete_sections(text: str, schema: Schema) -> str:
    """Return a truncated reply up to its last complete section (R-433), or "" if none is complete."""
    found = parse_sections(text, form_of(text, schema))
    if not found.is_sectioned:
        return ""
    kept = "".join(part.text for part in found.parts[:-1])
    return close_fence((found.preamble + kept).rstrip("\n")) if kept.strip() else ""


def _check_topic(texts: Sequence[str], told: Sequence[str]) -> str:
    """Return why a summary is not about the history it replaces, or "" if it is, or if that is unknown."""
    return why_not_about(texts, History(told)) if told else ""


def _rejection_reason(text: str, schema: Schema, prompt: str, told: Sequence[str]) -> str:
    """Return the reason (form, length or subject) why a reply is not a summary, or "" if it is."""
    if not schema.section and guess_schema(text) is None:
        return _check_length(text, told) or _check_topic([text], told)
    contents = _section_contents(text, schema, prompt)
    return contents.reason if isinstance(contents, Failed) else _check_topic(contents, told)


def _section_contents(text: str, schema: Schema, prompt: str) -> list[str] | Failed:
    """Return the contents of a reply's sections, or a failure: half of the sections must exist, some with content.

    An answer in another known form is accepted. "None" is a valid answer, but not for every section, and repeating the
    prompt's description of a section does not count.
    """
    form = schema if schema.headings == "labels" else form_of(text, schema)
    if form is None:
        return Failed(f"the summary is malformed (has none of the {counted(len(schema.section), 'required section')})")
    bodies = [part.body.strip() for part in parse_sections(text, form).parts if part.number <= len(form.section)]
    said = [body for body in bodies if body]
    contents = [body for body in said if not _NOTHING.fullmatch(body) and body not in prompt]
    answered = [*contents, *(body for body in said if _NOTHING.fullmatch(body))]
    if form.headings == "labels":
        return contents or Failed("the required sections of the summary are empty")
    asked = len(form.section)
    if 2 * len(answered) < asked:
        return Failed(f"the summary is malformed (only {len(answered)} of the {counted(asked, 'required section')})")
    return contents if len(contents) >= min(2, asked) else Failed("the sections of the summary are empty")


def _check_length(text: str, told: Sequence[str]) -> str:
    """Return the reason why free text is too short for a summary of its history, or "" if it is long enough."""
    if _is_acknowledgement(text):
        return _acknowledgement_error(text)
    least = min(MIN_CHARS, int(_SHARE_OF_SHORT * sum(map(_length, told)))) if told else MIN_CHARS
    return f"the reply is too short for a summary ({len(text)} characters)" if _length(text) <= least else ""


def _length(text: str) -> int:
    """Return the length in letters of an alphabet; a Chinese character counts as three."""
    return len(text) + 2 * sum("\u2e80" <= char <= "\uffef" for char in text)


def _is_acknowledgement(text: str) -> bool:
    """Return whether the reply is only an acknowledgement such as "OK", or has no words at all."""
    return " ".join(re.findall(r"[\w/']+", text.casefold())) in _acknowledgements()


def _acknowledgement_error(text: str) -> str:
    return f"the summariser answered {text[:_HEAD_CHARS]!r} instead of a summary"


@cache
def _acknowledgements() -> frozenset[str]:
    return frozenset(("", *prompts.load_table("refusals")["consents"]))


def _is_refusal(text: str) -> bool:
    """Return whether the reply begins like a refusal, an error or a question."""
    head = unicodedata.normalize("NFKC", text[:_HEAD_CHARS]).casefold().replace("’", "'")
    head = _LEADING_MARKS.sub("", head, count=1) if _LEADING_MARKS.match(head) else head
    refusal, error = _refusal_forms()
    return bool(refusal.match(head) or error.match(head))


@cache
def _refusal_forms() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = prompts.load_table("refusals")

    def any_of(name: str) -> str:
        return "|".join(sorted(map(re.escape, table[name]), key=len, reverse=True))

    refusal = rf"(?:(?:{any_of('openers')})[\s,.!;:。、，！-]*)*(?:{any_of('refusals')}|{any_of('questions')})"
    return re.compile(refusal), re.compile("|".join(table["errors"]))


def _is_error_object(text: str) -> bool:
    """Return whether the whole text is an error object from an endpoint."""
    if not text.startswith("{"):
        return False
    try:
        decoded = json.loads(text)
    except NOT_READABLE:
        return False
    return isinstance(decoded, dict) and "error" in decoded
