"""Asks a small model for a question's type and search terms, and if it concerns the project (R-204, R-212, R-220).

Used only if the user has configured a model (option `utility`); otherwise nothing is sent over the network (R-267). If
the model fails, is late or gives an unusable answer, the words of the question decide.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import TypeVar

from codecompanion.adapters.base import Adapter, ChatRequest, Finished, TextDelta
from codecompanion.errors import CodeCompanionError
from codecompanion.model.gathered import Classification, QuestionTypes, UtilityCalls
from codecompanion.model.messages import Message, Usage
from codecompanion.prompts import load
from codecompanion.retrieval.classifier import MAX_END_CHARS, classification_of_reply
from codecompanion.retrieval.question_type import types_of_reply
from codecompanion.retrieval.search_terms import model_terms

_log = logging.getLogger(__name__)

MAX_REPLY_TOKENS = 400
_MAX_REPLY_CHARS = 20_000

T = TypeVar("T")


class Utility:
    """Asks the utility model about questions; `model` "" = the adapter's default model."""

    def __init__(self, adapter: Adapter, model: str, timeout_s: float) -> None:
        self._adapter, self._model, self._timeout_s = adapter, model or adapter.default_model, timeout_s
        self._passes = list[Usage]()

    @property
    def calls(self) -> UtilityCalls:
        """Return the calls that reported their usage so far."""
        return UtilityCalls(self._adapter.name, self._model, tuple(self._passes))

    async def classify(self, question: str) -> Classification | None:
        """Classify whether the question is about the project (R-204); None if there is no usable answer."""
        return await self._ask("classify_question", question, classification_of_reply)

    async def types(self, question: str) -> QuestionTypes | None:
        """Return the types of the question (R-212), or None if there is no usable answer."""
        return await self._ask("question_type", question, types_of_reply)

    async def terms(self, question: str) -> tuple[str, ...]:
        """Return search terms for the question (R-220), or () if there is no usable answer."""
        return await self._ask("search_terms", question, model_terms) or ()

    async def _ask(self, prompt: str, question: str, read: Callable[[str], T]) -> T | None:
        short = (
            question
            if len(question) <= 2 * MAX_END_CHARS
            else f"{question[:MAX_END_CHARS]} … {question[-MAX_END_CHARS:]}"
        )
        text = load(prompt).replace("{question}", json.dumps(short, ensure_ascii=True))
        request = ChatRequest(
            messages=(Message(id=prompt, role="user", content=text),),
            model=self._model,
            max_output_tokens=MAX_REPLY_TOKENS,
        )
        parts, size = list[str](), 0
        try:
            async with asyncio.timeout(self._timeout_s):
                async for event in self._adapter.stream(request):
                    if isinstance(event, TextDelta):
                        parts.append(event.text)
                        size += len(event.text)
                    elif isinstance(event, Finished) and event.usage is not None:
                        self._passes.append(event.usage)
                    if size > _MAX_REPLY_CHARS:
                        return None
        except (TimeoutError, CodeCompanionError) as error:
            _log.info("%s gave no answer for %s: %s", self._model, prompt, error)
            return None
        return read("".join(parts))
