"""Providers' messages about a request that is too long, and the token counts in them."""

from __future__ import annotations

import pytest

from codecompanion.adapters.errors.error_map import Endpoint, error_from_status
from codecompanion.adapters.errors.overflow_figures import read_overflow
from codecompanion.errors import ContextOverflow

SENTENCES = {
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please"
    " reduce the length of the messages.": (130000, 128000),
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages,"
    " 1000 in the completion). Please reduce the length of the messages or completion.": (5000, 4096),
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140123 tokens (140000 of"
    " text input, 123 of tool input). Please reduce the length of either one.": (140123, 131072),
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.": (140000, 131072),
    "prompt is too long: 210000 tokens > 200000 maximum": (210000, 200000),
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens`"
    " and try again": (188240, 200000),
    "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context length": (
        33000,
        32768,
    ),
    "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).": (1050000, 1048576),
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it": (5000, 4096),
    "the request exceeds the available context size (4096 tokens), try increasing the context size": (0, 4096),
    "prompt token count of 130,000 exceeds the limit of 128,000": (130000, 128000),
    "This model's maximum context length is 4096 tokens and your request has 5000 input tokens": (5000, 4096),
    "Your input exceeds the context window of this model. Please adjust your input and try again.": (0, 0),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_figures_in_a_providers_message_are_read(sentence: str) -> None:
    """This also works through the error map, which must recognise the overflow."""
    assert read_overflow(sentence) == SENTENCES[sentence]
    error = error_from_status(400, {"error": {"message": sentence}}, {}, Endpoint(name="test"))
    assert isinstance(error, ContextOverflow)
    assert (error.prompt_tokens, error.limit_tokens) == SENTENCES[sentence]


@pytest.mark.parametrize("sentence", ["", "Too many requests: 12 of 10.", "404 not found"])
def test_other_messages_have_no_figures(sentence: str) -> None:
    """The results are zeros, not guesses."""
    assert read_overflow(sentence) == (0, 0)
