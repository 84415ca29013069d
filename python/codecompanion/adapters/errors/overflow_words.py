"""Error wordings of providers and servers for a request that is too long, as data (R-535, lesson 1).

Three tables: error codes, messages, and similar messages about other limits. Two rules cover unknown wordings: either a
token count exceeds a limit, or the message gives two sizes for a prompt and a context window, and mentions no limit on
the reply, on images or per minute. The wordings are from public threads; `tests/unit/adapters/overflow_wordings.jsonl`
contains each actual answer with its source.
"""

from __future__ import annotations

import re

from codecompanion.formats.regex import regex

_CODES = frozenset(
    [
        *("context_length_exceeded", "context_window_exceeded", "model_context_window_exceeded"),
        *("exceed_context_size_error", "contextwindowexceedederror", "outofcontexterror"),
        *("model_max_prompt_tokens_exceeded", "tokens_limit_reached", "tokens_too_long", "characters_too_long"),
        *("request_too_large", "prompt_too_long", "string_above_max_length", "token_limit_exceeded"),
        # Tencent Cloud.
        "requestsizelimitexceeded",
        # Zhipu; Baidu's older codes.
        *("1261", "336007", "336103", "336104"),
    ]
)
_SENTENCES = regex(
    "|".join(
        (
            r"(?:prompt|inputs?|request|conversation|query|this message)(?: tokens?| length| size)?"
            # llama.cpp, about the length of an input to embed.
            r"(?: \(\d+ tokens\))? (?:is |are )?too (?:long|large|big)",
            # Azure, about the number of messages; a proxy for Copilot.
            r"\bmessages[`'\"]* (?:is |are )?too long|text-too-long",
            r"too many (?:input |prompt )?tokens",
            r"tokens? limit (?:was |is |has been )?exceeded",
            r"maximum (?:context|prompt|input) length",
            r"context[ _](?:length|window|size|limit)[ _](?:is |was |has been )?exceed",
            r"context (?:length |window )?overflow|out of context",
            r"context shift is disabled",
            r"reduce (?:the |your )?(?:(?:length|size) of (?:the |your )?(?:messages?|prompt|input)"
            r"|(?:message|prompt|input) (?:size|length)|prompt;)",
            r"shorter (?:input|prompt)",
            r"range of input length",
            r"max input characters",
            r"n_keep\b.{0,25}\bn_ctx",
            r"request exceeds the maximum size|request payload size exceeds",
            # ExLlama: its tensors and its cache.
            r"\+ length \(\d+\) exceeds dimension size|exceeds cache (?:size|length)",
            r"cannot be enqueued\. total cache allocated",
            # SambaNova.
            r"maximum supported sequence length",
            # Google; the JSON reader in front of Qwen, about a 20 MB string.
            r"cannot truncate to \d+, required \d+|string value length \(\d+\) exceeds",
            # Chinese: too long, beyond the (length) limit.
            r"(?:prompt|输入|上下文|请求|token|文本|对话).{0,20}(?:超长|过长|超出|超过|超限)",
        )
    ),
    re.IGNORECASE,
)
_COUNTED = regex(
    r"\b(?:prompts?|inputs?|tokens?|prompt_tokens|context|conversation|sequence|history|max_seq_len|model length"
    r"|max length)\b",
    re.IGNORECASE,
)
_TOO_MUCH = regex(
    r"exceed|overflow|\btoo (?:long|large|big|many)\b|\b(?:longer|larger|greater|more) than\b|\bbeyond\b"
    r"|must (?:have|be) (?:less|fewer|shorter|smaller)|must be <|\bdoes(?: not|n't) fit\b|not enough"
    r"|\bbut the .{0,30}\b(?:is|of) \d|, max\b(?! age)",
    re.IGNORECASE,
)
_LIMIT = regex(
    r"\b(?:max|maximum|limit|limits|allowed|context (?:length|window|size)|model context"
    # vLLM, TensorRT-LLM.
    r"|max_(?:seq_len|model_len|input_len|num_tokens|input_tokens|prompt_tokens)|n_ctx)\b"
    r"|(?:<=|less than) ?\d",
    re.IGNORECASE,
)
_REQUEST_TOO_LARGE = regex(r"request (?:body |entity )?(?:is )?too large", re.IGNORECASE)
"""Also matches messages about a per-minute limit: a request larger than a whole minute's tokens never fits."""

# Limits on rate, time or money: a smaller request would not help.
_RATE = regex(
    r"throttl|rate[ _-]?limit|too many requests|please wait|quota|per (?:minute|hour|day|month)|daily|monthly|billing"
    r"|balance|credit|subscription|time ?out|timed out|took too long"
    # Chinese: frequency, rate, concurrency, quota, try again later.
    r"|次数|频率|频繁|速率|限流|并发|限额|配额|余额|稍后",
    re.IGNORECASE,
)
# Login tokens.
_LOGIN = regex(
    r"(?:access|bearer|refresh|id|invalid|auth\w*) tokens?\b.{0,40}(?:expired|invalid|revoked)", re.IGNORECASE
)
# Limits on the requested reply.
_REPLY = regex(
    r"max_(?:completion_|new_|output_)?tokens\b|maximum tokens you requested|max(?:imum)? output|completion tokens"
    r"|output tokens",
    re.IGNORECASE,
)
# Limits on other things: a shorter history would not help.
_OTHER_THINGS = regex(
    r"\b(?:images?|pictures?|files?|tools?|functions?|bytes|[kmg]i?b|seconds|minutes|pixels|items|stop sequences"
    r"|access token|expired|api key|price|usd|afford)\b|\$\d",
    re.IGNORECASE,
)
_SIZED = regex(r"\b(?:prompts?|inputs?|messages|conversation|context|sequence|history|request)\b", re.IGNORECASE)
_SIZES = regex(r"\b(?:tokens?|context|window|(?:sequence|prompt|input|cache) length|max_seq_len)\b", re.IGNORECASE)
_BOUND = regex(
    r"\b(?:only|at most|up to|max(?:imum)?|limit|window|supports?|fits?|handles?|above|over|beyond|than|allowed|but)\b",
    re.IGNORECASE,
)
_NUMBER = regex(r"(?<![\w.])\d{1,3}(?:,\d{3})+\b|(?<![\w.])\d{3,9}\b(?!\.\d)|\b\d{3,9}(?=-token)")
_MIN_WINDOW = 256
# Bedrock, about a string in a request. A context window in characters is never as small as the limit of a name.
_MAX_LENGTH = regex(r"(?:expected maxLength: |must have length less than or equal to )(\d+)")
_MIN_TEXT = 2_000
# Uncertain wordings: if the prompt nearly fills the window, they still count as an overflow (`session/turn/turn.py`).
_UNSURE = regex(r"possible causes?|\bmay be\b|\bmight\b", re.IGNORECASE)
_SENT = regex(r"\b(?:inputs?|prompt|messages)\b(?! argument| validation| should)", re.IGNORECASE)
# An id or a name that is too long has a similar code and message: a smaller history would not help.
_SHORT_FIELD = regex(r"maximum length (?:of )?\d{1,4}\b(?! tokens)", re.IGNORECASE)


def is_overflow(code: str, sentence: str) -> bool:
    """Return whether the error means that the request exceeds the context window."""
    if _SHORT_FIELD.search(sentence):
        return False
    if code.lower() in _CODES or _REQUEST_TOO_LARGE.search(sentence):
        return True
    if _LOGIN.search(sentence):
        return False
    if _RATE.search(sentence) or _UNSURE.search(sentence) or (_REPLY.search(sentence) and not _SENT.search(sentence)):
        return False
    if _SENTENCES.search(sentence) is not None or any(map(_reports_excess, _split(sentence))):
        return True
    longest = _MAX_LENGTH.search(sentence)
    return int(longest[1]) >= _MIN_TEXT if longest else _names_two_sizes(sentence)


def _split(text: str) -> list[str]:
    return re.split(r"[.!?]\s+|\n", text)


def _names_two_sizes(sentence: str) -> bool:
    """Return whether a sentence gives the sizes of a prompt and a window, and no other sizes."""
    if _OTHER_THINGS.search(sentence) or _REPLY.search(sentence):
        return False
    sizes = {int(number.replace(",", "")) for number in _NUMBER.findall(sentence)}
    return len({size for size in sizes if size >= _MIN_WINDOW}) > 1 and all(
        words.search(sentence) for words in (_SIZED, _SIZES, _BOUND)
    )


def _reports_excess(sentence: str) -> bool:
    return all(words.search(sentence) for words in (_COUNTED, _TOO_MUCH, _LIMIT))
