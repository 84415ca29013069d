"""Asks a model for summaries: builds the prompt, retries, and sends several requests at once (R-120, R-433, R-533).

It is a generator like the strategies that use it. The caller may answer only the first question, or any number of those
`beside` it in parallel; unanswered questions are asked next. Every question is asked at most twice: the second time
with more room (if there is any) because the reply was truncated, or with the reason why it was not a summary. While it
is uncertain whether the model writes summaries at all, questions are asked one at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

import msgspec

from codecompanion import prompts
from codecompanion.context.summary.judge_reply import accept_reply
from codecompanion.context.summary.spare_model import NOT_WORTH_IT, costs_more_than_it_saves, takes_too_long
from codecompanion.context.summary.topic_evidence import READ_CHARS, cut_evenly
from codecompanion.context.summary_text.sections import Schema, load_schema
from codecompanion.context.transcript.format_transcript import escape, wrap
from codecompanion.context.work import Env, Failed, Messages, SummaryReply, SummaryRequest, Work
from codecompanion.formats.cutting import cut_line
from codecompanion.formats.sanitise import leave_out_orders
from codecompanion.model.messages import is_typed_by_user

_INSTRUCTIONS = "The user asks for this in particular:\n\n{instructions}"
_TASK = "The task is called: {title}"
_TITLE_CHARS = 200
WORDS_PER_TOKEN = 0.7
"""Words per token of plain English with names in it. The prompt asks for a number of words; the token limit enforces
it."""
_MIN_WORDS = 40


class Question(msgspec.Struct, frozen=True):
    """A request, its schema and the prompt's description of it; `most`: the maximum output tokens of a second try.

    `part`: the entries in its prompt, if not all. `otherwise`: the fallback request if the request within the chat does
    not produce a summary.
    """

    request: SummaryRequest
    schema: Schema
    prompt: str
    most: int
    part: tuple[str, ...] = ()
    otherwise: SummaryRequest | None = None

    def about(self, told: Callable[[Messages], tuple[str, ...]]) -> tuple[str, ...]:
        """Return the strings that the answer must be about, starting with its part of the subject."""
        return (*self.part, *told(self.request.subject))


class Answer(msgspec.Struct, frozen=True):
    """An accepted summary, and its author; `in_place`: written within the chat."""

    text: str
    source: str = "model"
    in_place: bool = False


def summary_prompt(schema: str, instructions: str, budget: int = 0, title: str = "") -> str:
    """Return the prompt of the schema with its length in words (R-433) and the user's instructions (R-533).

    It contains the task's `title` if the schema asks for it (R-435).
    """
    form = load_schema(schema)
    prompt = prompts.load(form.prompt)
    if form.names_task and title.strip():
        prompt += "\n\n" + _TASK.format(title=escape(cut_line(title, _TITLE_CHARS)))
    if budget:
        words = max(_MIN_WORDS, round(budget * WORDS_PER_TOKEN / 10) * 10)
        prompt += "\n\n" + prompts.load("summary_budget").format(words=words)
    if instructions.strip():
        prompt += "\n\n" + _INSTRUCTIONS.format(instructions=instructions.strip())
    return prompt


Texts = Generator[SummaryRequest, SummaryReply, "tuple[str, ...] | Failed"]


class SummaryRun:
    """One run of S8 or S9: the form of the summary, the size of the summariser's window, and the author.

    Figures are in our tokens, except `window` and the limits of a reply, which are in the summariser's tokens.
    """

    def __init__(
        self,
        work: Work,
        env: Env,
        schema: str,
        max_tokens: int,
        window_share: float,
        *,
        spares_below: int = 0,
        max_wait_s: float = 0,
    ) -> None:
        self.work, self._count_text, self.counts = work, env.count_text, dict[str, int]()
        self.schema, self._instructions, self._title = load_schema(schema), env.instructions, env.title
        self.window = env.summariser_window or env.window
        self.output = max(1, min(max_tokens, int(self.window * window_share)))
        self.prompt = self.order(self.output)
        self.ratio, self._is_proven = env.summariser_ratio, env.writer_is_proven
        self.source = ""
        self.in_place: bool | None = None
        self._spares, self._max_wait_s = env.window < spares_below, max_wait_s
        self.falls_back = self._spares
        """Whether code writes the summary if the model did not."""
        self._weighs: Env | None = None if env.manual or env.has_summary else env

    def order(self, max_tokens: int) -> str:
        """Return the instructions for a summary of at most this many tokens."""
        return summary_prompt(self.schema.name, self._instructions, max_tokens, self._title)

    @property
    def too_small(self) -> Failed:
        """Return the error for a window too small to ask for a summary."""
        return Failed(f"the summariser's window of {self.window} tokens is too small to summarise anything")

    def count_text(self, text: str) -> int:
        """Return the estimated token count of a string; each string is counted only once."""
        if text not in self.counts:
            self.counts[text] = self._count_text(text)
        return self.counts[text]

    def count(self, entries: tuple[str, ...]) -> int:
        """Return the estimated token count of the entries; each entry is counted only once."""
        return sum(map(self.count_text, entries))

    def about(self, chunks: Sequence[tuple[Messages, tuple[str, ...]]], output: int) -> list[Question]:
        """Return a question for each chunk, which consists of the messages it is about and their entries."""
        questions = []
        for number, (subject, entries) in enumerate(chunks, 1):
            order = self.prompt
            if len(chunks) > 1:
                order += "\n\n" + prompts.load("summary_part").format(part=number, parts=len(chunks))
            tokens = self.count_text(wrap((), order)) + self.count(entries)
            part = (number, len(chunks))
            asked = self.question(wrap(entries, order), tokens, subject, output, part)
            questions.append(msgspec.structs.replace(asked, part=entries) if len(chunks) > 1 else asked)
        return questions

    def question(
        self, prompt: str, tokens: int, subject: Messages, output: int, part: tuple[int, int] = (1, 1)
    ) -> Question:
        """Return a question, with the room that the summariser's window leaves for the reply."""
        free = self.window - math.ceil(tokens * self.ratio)
        request = SummaryRequest(
            prompt=prompt,
            subject=subject,
            max_output_tokens=output,
            room_tokens=max(output, free),
            prompt_tokens=tokens,
            part=part[0],
            parts=part[1],
        )
        return Question(request, self.schema, self.prompt, max(output, min(2 * output, self.window // 2, free)))

    def ask(self, questions: Sequence[Question]) -> Texts:
        """Ask the questions and return the answers; record the author of the first."""
        if declined := self._decline([question.request for question in questions]):
            return declined
        answers = yield from ask_all(questions, is_proven=self._is_proven, again=not self._spares)
        if isinstance(answers, Failed):
            return answers
        self._is_proven = True
        self.source = self.source or (answers[0].source if answers else "code")
        if any(question.otherwise is not None for question in questions):
            self.in_place = any(answer.in_place for answer in answers)
        return tuple(answer.text for answer in answers)

    def _decline(self, requests: list[SummaryRequest]) -> Failed | None:
        """Return a failure if the model is not asked at all, or None; the first requests decide for the whole run."""
        env, self._weighs = self._weighs, None
        if env is None:
            return None
        if self._spares and costs_more_than_it_saves(self.work, requests, self.output, env):
            return NOT_WORTH_IT
        declined = takes_too_long(requests, self._max_wait_s, env)
        self.falls_back = self.falls_back or declined is not None
        return declined

    def done(self, text: str) -> tuple[str, Work]:
        """Return the text without instructions to a model (R-433), and the work with its details."""
        typed = "\n".join(message.text for message in self.work.before if is_typed_by_user(message))
        text, orders = leave_out_orders(text, typed)
        said = self.work.with_details(schema=self.schema.name, written_by=self.source, orders_left_out=orders or None)
        return text, said.with_details(in_place=self.in_place)


class _Asked(msgspec.Struct, frozen=True):
    """A pending question: its index, its request, and whether the first reply was not a summary (`again`)."""

    place: int
    request: SummaryRequest
    is_second: bool = False
    again: bool = False


def ask_all(
    questions: Sequence[Question], *, is_proven: bool = True, again: bool = True
) -> Generator[SummaryRequest, SummaryReply, tuple[Answer, ...] | Failed]:
    """Return the answers in order, or the first failure, after which nothing more is asked.

    If `is_proven` is False, the first question is asked alone, and the others after a good answer. If `again` is False,
    there are no retries.
    """
    answers: dict[int, Answer] = {}
    told = _SubjectTexts()
    waiting = [_Asked(place, question.request) for place, question in enumerate(questions)]
    while waiting:
        alone = waiting[0].again or (not is_proven and not answers)
        beside = tuple(asked.request for asked in waiting[1:] if not alone)
        reply = yield msgspec.structs.replace(waiting[0].request, beside=beside)
        replies = (reply, *reply.beside)[: 1 + len(beside)]
        answered, waiting = waiting[: len(replies)], waiting[len(replies) :]
        once_more: list[_Asked] = []
        for asked, given in zip(answered, replies, strict=True):
            question = questions[asked.place]
            text = accept_reply(given, question.schema, question.prompt, question.about(told))
            if not isinstance(text, Failed):
                answers[asked.place] = Answer(text, given.source, asked.request.in_place)
                continue
            second = _second_request(question, asked.request, given, text) if again and not asked.is_second else None
            if second is None:
                return msgspec.structs.replace(text, by_writer=True)
            once_more.append(_Asked(asked.place, second, is_second=True, again=text.again))
        waiting = [*once_more, *waiting]
    return tuple(answers[place] for place in range(len(questions)))


class _SubjectTexts:
    """Caches the strings of a subject, which is the same for all parts of a long history."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Messages, tuple[str, ...]]] = {}

    def __call__(self, subject: Messages) -> tuple[str, ...]:
        if id(subject) not in self._known:
            self._known[id(subject)] = subject, subject_texts(subject)
        return self._known[id(subject)][1]


def subject_texts(subject: Messages) -> tuple[str, ...]:
    """Return the strings that a summary of these messages is about: words and calls, then the results that fit."""
    spoken, results = list[str](), list[str]()
    for message in subject:
        calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
        texts = [text for text in (message.text, message.path or "", *calls) if text]
        (results if message.role == "tool" else spoken).extend(texts)
    kept = cut_evenly(spoken, READ_CHARS * 3 // 4)
    return (*kept, *cut_evenly(results, READ_CHARS - sum(map(len, kept))))


def _second_request(
    question: Question, request: SummaryRequest, reply: SummaryReply, failed: Failed
) -> SummaryRequest | None:
    """Return the second request, or None if it would not help or there is no more room."""
    if question.otherwise is not None and (not reply.error or reply.refused):
        return question.otherwise
    if reply.source != "model" or reply.error:
        return None
    if reply.stop == "length":
        # The model's thinking before its answer counts as well.
        wanted = min(max(question.most, question.most + reply.thinking_tokens), request.room_tokens or question.most)
        if wanted <= request.max_output_tokens:
            return None
        return msgspec.structs.replace(request, max_output_tokens=wanted)
    if not failed.again:
        return None
    note = prompts.load("summary_again").format(reason=failed.reason)
    return msgspec.structs.replace(request, prompt=f"{request.prompt}\n\n{note}", prompt_tokens=0)
