"""Put questions for summaries to a model: the prompt, what is asked again, several at once (R-120, R-433, R-533).

A generator like the strategies that use it. Whoever answers may answer the first question alone or, of those that stand
`beside` it, as many as it likes at the same time; what was not answered is asked next. Every question is asked at most
twice: once more when the reply was cut, with more room if there is, or was no summary, with the reason.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from codecompanion import prompts
from codecompanion.context.sections import Schema, load_schema
from codecompanion.context.summary_reply import accept_reply
from codecompanion.context.work import Failed, SummaryReply, SummaryRequest

_INSTRUCTIONS = "The user asks for this in particular:\n\n{instructions}"
WORDS_PER_TOKEN = 0.7
"""Of plain English with names in it; a budget in words is a wish, the limit of the request stands behind it."""
_LEAST_WORDS = 40


class Question(msgspec.Struct, frozen=True):
    """One request, the form it asks for and its words about that form; `most` tokens a second try may write."""

    request: SummaryRequest
    schema: Schema
    prompt: str
    most: int


class Answer(msgspec.Struct, frozen=True):
    """A text that counts as a summary, and who wrote it."""

    text: str
    source: str = "model"


def summary_prompt(schema: str, instructions: str, budget: int = 0) -> str:
    """Return the prompt of the schema with its length in words (R-433) and the user's own wishes (R-533)."""
    prompt = prompts.load(load_schema(schema).prompt)
    if budget:
        words = max(_LEAST_WORDS, round(budget * WORDS_PER_TOKEN / 10) * 10)
        prompt += "\n\n" + prompts.load("summary_budget").format(words=words)
    if instructions.strip():
        prompt += "\n\n" + _INSTRUCTIONS.format(instructions=instructions.strip())
    return prompt


def ask_all(
    questions: Sequence[Question],
) -> Generator[SummaryRequest, SummaryReply, tuple[Answer, ...] | Failed]:
    """Return the answers in order, or why one of them is none: then nothing more is asked."""
    answers: dict[int, Answer] = {}
    waiting = [(place, question.request, False) for place, question in enumerate(questions)]
    while waiting:
        first, *others = waiting
        reply = yield msgspec.structs.replace(first[1], beside=tuple(request for _, request, _ in others))
        replies = (reply, *reply.beside)
        answered, waiting = waiting[: len(replies)], waiting[len(replies) :]
        for (place, request, is_second), given in zip(answered, replies, strict=False):
            question = questions[place]
            text = accept_reply(given, question.schema, question.prompt, _told(question.request))
            if not isinstance(text, Failed):
                answers[place] = Answer(text, given.source)
                continue
            again = None if is_second else _once_more(question, request, given, text)
            if again is None:
                return text
            waiting.append((place, again, True))
    return tuple(answers[place] for place in range(len(questions)))


def _told(request: SummaryRequest) -> tuple[str, ...]:
    """Return what the summary has to be about: words, paths and the arguments of calls."""
    return tuple(
        text
        for message in request.subject
        for text in (message.text, message.path or "", *(f"{c.name} {c.arguments}" for c in message.tool_calls))
        if text
    )


def _once_more(
    question: Question, request: SummaryRequest, reply: SummaryReply, failed: Failed
) -> SummaryRequest | None:
    """Return the second request, None when it would bring nothing: there is no more room, or asking cannot help."""
    if reply.source != "model" or reply.error:
        return None
    if reply.stop == "length":
        # What a model thought before its answer counts as well.
        wanted = min(max(question.most, question.most + reply.thinking_tokens), request.room_tokens or question.most)
        if wanted <= request.max_output_tokens:
            return None
        return msgspec.structs.replace(request, max_output_tokens=wanted)
    if not failed.again:
        return None
    note = prompts.load("summary_again").format(reason=failed.reason)
    return msgspec.structs.replace(request, prompt=f"{request.prompt}\n\n{note}")
