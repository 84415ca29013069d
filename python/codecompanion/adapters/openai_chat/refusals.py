"""Learns an endpoint's unsupported features from its error messages; the request is sent again once without them.

Many servers copy Chat Completions incompletely, and behind a gateway the gaps change with the model. Known gaps are in
the adapter's entry (`builtin_adapters.json`); this module learns the rest. Sources: the error messages of OpenAI
("Unsupported parameter"), pydantic servers ("Extra inputs are not permitted": Mistral, vLLM), DeepSeek and Moonshot
("reasoning_content … must be passed back", "… is missing"), Gemini ("missing a thought_signature"), OpenAI via gateways
("tool_calls[0].id: string too long"), Mistral's models via gateways ("must be a-z, A-Z, 0-9, with a length of 9",
"Unexpected role 'user' after role 'tool'"), chat templates of Mistral's and Gemma's models ("roles must alternate";
llama.cpp and Ollama answer 500).
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from codecompanion.adapters.alternation import wants_alternation
from codecompanion.adapters.openai_chat.call_ids import IdForm
from codecompanion.formats.regex import regex

_NOT_TAKEN = regex(
    r"unsupported|not supported|not support|unrecogni[sz]ed|unknown|unexpected|extra[_ ](?:forbidden|inputs?|fields?)"
    r"|not permitted|not allowed|not accepted|invalid (?:parameter|field|argument|property)",
    re.IGNORECASE,
)
_WANTS_REASONING = regex(
    r"reasoning_content.{0,80}(?:must be|is missing|is required|passed back)|missing.{0,40}reasoning_content",
    re.IGNORECASE | re.DOTALL,
)
_WANTS_SIGNATURE = regex(r"missing.{0,20}thought_?signature|thought_?signature.{0,40}(?:missing|required)", re.I)
_WANTS_SHORT_IDS = regex(r"tool_call(?:s\[\d+\]\.|_)id.{0,20}(?:string )?too long", re.IGNORECASE)
_WANTS_LETTERS = regex(r"tool call id .{1,300} but must be .{0,40}length of 9", re.IGNORECASE | re.DOTALL)
_WANTS_REPLY = regex(r"unexpected role '(?:user|system)' after role 'tool'", re.IGNORECASE)
_REASONING_NAMES = regex(r"\breasoning(?:_content|_details)?\b", re.IGNORECASE)
_OTHER_LIMIT = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for requests to one model in addition to the configuration.

    `limit_field` is None for the configured field, or "" if no limit can be sent. `reasoning` "required": every message
    that called a tool must have `reasoning_content`, even if empty; "refused": no message may have it. `call_ids` is
    None for the configured form. `tells_progress`: True for llama.cpp's server, which reports prompt-processing
    progress on request; False if it refused the option; None if unknown. `reply_to_tools`: an assistant must reply
    between a tool result and the user. `alternate`: user and assistant must alternate (`adapters/alternation.py`).
    `images`: the model accepts images.
    """

    stream_options: bool = True
    parallel_tool_calls: bool = True
    limit_field: str | None = None
    reasoning: Literal["", "required", "refused"] = ""
    sign_calls: bool = False
    call_ids: IdForm | None = None
    tells_progress: bool | None = None
    reply_to_tools: bool = False
    alternate: bool = False
    images: bool = True


NOTHING_LEARNED = Learned()


def learn(learned: Learned, said: str, *, limit_field: str) -> Learned | None:
    """Return the rules updated from the endpoint's refusal message, or None if it teaches nothing new.

    `limit_field`: the field for the reply limit in the refused request, or "" if it had none.
    """
    change = msgspec.structs.replace
    if _WANTS_REASONING.search(said):
        return None if learned.reasoning else change(learned, reasoning="required")
    if _WANTS_SIGNATURE.search(said):
        return None if learned.sign_calls else change(learned, sign_calls=True)
    if _WANTS_REPLY.search(said):
        return None if learned.reply_to_tools else change(learned, reply_to_tools=True)
    if wants_alternation(said):
        return None if learned.alternate else change(learned, alternate=True)
    if _WANTS_LETTERS.search(said):
        return None if learned.call_ids == "letters" else change(learned, call_ids="letters")
    if _WANTS_SHORT_IDS.search(said):
        return None if learned.call_ids else change(learned, call_ids="short")
    other = _OTHER_LIMIT.get(limit_field, "")
    refused = _NOT_TAKEN.search(said) is not None
    if limit_field and _names(limit_field, said) and (refused or (other and _names(other, said))):
        # The other name was tried before: the endpoint accepts neither.
        return change(learned, limit_field=other if learned.limit_field is None else "")
    if not refused:
        return None
    if "stream_options" in said and learned.stream_options:
        return change(learned, stream_options=False)
    if "return_progress" in said and learned.tells_progress is not False:
        return change(learned, tells_progress=False)
    if "parallel_tool_calls" in said and learned.parallel_tool_calls:
        return change(learned, parallel_tool_calls=False)
    if _REASONING_NAMES.search(said) and learned.reasoning != "refused":
        return change(learned, reasoning="refused")
    return None


def _names(field: str, said: str) -> bool:
    return re.search(rf"\b{field}\b", said) is not None
