"""How the fake Messages server handles an accepted request: compact, cache, sign, count, answer.

Threshold compaction is a separate pass before the reply: it reads the whole prompt, and the reply is based on its
summary alone, as recorded: `usage.iterations` lists both, the top level only the reply. On-demand compaction consists
of such a pass only. After a failed pass, the reply is based on the whole prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tests.providers.anthropic.answers import Call, Redacted, Reply, Said, Text, Thinking, render
from tests.providers.anthropic.cache import CacheUse, PromptCache
from tests.providers.anthropic.prompt import THINKING_KINDS, Placed, Prompt, prompt_of, text_tokens
from tests.providers.anthropic.rules.compaction import DEMAND_BETA, THRESHOLD_BETA
from tests.providers.anthropic.rules.request import Checked, Memory, paused_digest
from tests.providers.anthropic.rules.thinking import BINDING_BETA
from tests.providers.anthropic.signing import (
    binding_at_end,
    demanded_block,
    redacted_block,
    start_of,
    thinking_block,
    thinking_id,
    threshold_block,
)
from tests.providers.loopback.answers import Answer


@dataclass(frozen=True)
class _Pass:
    """One call of the model: an entry of `usage.iterations`."""

    kind: str
    use: CacheUse
    output_tokens: int

    def report(self) -> dict[str, Any]:
        return {**self.use.usage(), "output_tokens": self.output_tokens, "type": self.kind}


class Simulation:
    """The simulated model of one server. `encrypted`: threshold blocks carry `encrypted_content`."""

    def __init__(self, cache: PromptCache, memory: Memory, *, encrypted: bool) -> None:
        self._cache, self._memory, self._encrypted = cache, memory, encrypted
        self._numbers = count(1)
        self._compactions = count(1)

    def perform(self, checked: Checked, wanted: Reply) -> Answer:
        """Return the answer to a request and record its signed parts."""
        stream = bool(checked.body.get("stream"))
        if checked.body.get("compaction") is not None:
            return self._compact_on_demand(checked, wanted, stream=stream)
        said: list[Said] = []
        passes: list[_Pass] = []
        prompt = checked.plan.prompt
        edit = checked.plan.compaction
        paused = False
        if edit is not None:
            said, compacted = self._compact_at_threshold(checked, wanted, passes)
            prompt = compacted or prompt
            paused = bool(edit.get("pause_after_compaction"))
        if not paused:
            said.extend(self._say(checked, wanted, said))
            output = sum(_output_tokens(one) for one in said if one.block["type"] != "compaction")
            passes.append(_Pass("message", self._cache.use(checked.model, prompt), output + 1))
        stop = "compaction" if paused else wanted.stop or _fitting_stop(said)
        self._remember(said, stop)
        return self._answer(checked, wanted, said, passes, stop, stream=stream)

    def _compact_on_demand(self, checked: Checked, wanted: Reply, *, stream: bool) -> Answer:
        prompt = checked.plan.prompt
        fails = wanted.stop is not None or wanted.compaction_fails
        summary = "" if fails else wanted.summary or self._summary(prompt)
        block = demanded_block(summary, prompt_of(checked.body))
        said = [] if fails else [Said(block, whole=True)]
        passes = [_Pass("compaction", self._cache.use(checked.model, prompt), text_tokens(summary))]
        stop = (wanted.stop or "end_turn") if fails else "compaction"
        return self._answer(checked, wanted, said, passes, stop, stream=stream)

    def _compact_at_threshold(
        self, checked: Checked, wanted: Reply, passes: list[_Pass]
    ) -> tuple[list[Said], Prompt | None]:
        """Return the compaction block and the prompt from which the model continues, or None if the pass failed."""
        prompt = checked.plan.prompt
        use = self._cache.use(checked.model, prompt)
        if wanted.compaction_fails:
            passes.append(_Pass("compaction", use, 1))
            return [Said({"type": "compaction", "content": None})], None
        summary = wanted.summary or self._summary(prompt)
        block = threshold_block(summary, encrypted=self._encrypted)
        passes.append(_Pass("compaction", use, text_tokens(summary)))
        return [Said(block)], replace(prompt, blocks=(Placed("assistant", 0, 0, block),))

    def _summary(self, prompt: Prompt) -> str:
        texts = [one.block["text"] for one in prompt.blocks if one.role == "user" and one.kind == "text"]
        latest = f' The latest request: "{texts[-1][:80]}"' if texts else ""
        return f"Summary {next(self._compactions)} of {len(prompt.blocks)} blocks, {prompt.tokens} tokens.{latest}"

    def _say(self, checked: Checked, wanted: Reply, before: Sequence[Said]) -> Iterator[Said]:
        """Yield the blocks of the reply, signed for their place in the conversation."""
        prompt = prompt_of(checked.body)
        binding = binding_at_end(prompt, (Placed("assistant", -1, k, one.block) for k, one in enumerate(before)))
        for index, piece in enumerate(wanted.pieces, len(before)):
            match piece:
                case Text(text):
                    one = Said({"type": "text", "text": text})
                case Thinking(text):
                    one = Said(thinking_block(text, binding))
                case Redacted():
                    one = Said(redacted_block(next(self._numbers), binding), whole=True)
                case Call(name, arguments, call_id):
                    call_id = call_id or f"toolu_{next(self._numbers):024d}"
                    block = {"type": "tool_use", "id": call_id, "name": name, "input": _parsed(arguments)}
                    one = Said(block, arguments)
            yield one
            binding = binding.after(Placed("assistant", -1, index, one.block), start_of(prompt))

    def _remember(self, said: Sequence[Said], stop: str) -> None:
        blocks = [one.block for one in said]
        thinking = tuple(thinking_id(block) for block in blocks if block["type"] in THINKING_KINDS)
        for block in blocks:
            if block["type"] == "tool_use":
                self._memory.thinking[block["id"]] = thinking
        if stop == "pause_turn":
            self._memory.paused.add(paused_digest(blocks))

    def _answer(
        self,
        checked: Checked,
        wanted: Reply,
        said: Sequence[Said],
        passes: Sequence[_Pass],
        stop: str,
        *,
        stream: bool,
    ) -> Answer:
        sequences = checked.body.get("stop_sequences") or [None]
        message: dict[str, Any] = {
            "id": f"msg_{next(self._numbers):024d}",
            "type": "message",
            "role": "assistant",
            "model": checked.model.id,
            "stop_reason": stop,
            "stop_sequence": sequences[0] if stop == "stop_sequence" else None,
            "stop_details": {"type": "refusal", "category": None, "explanation": None} if stop == "refusal" else None,
            "usage": _usage(passes, said, checked) | dict(wanted.usage),
        }
        if checked.body.get("context_management") is not None:
            message["context_management"] = {"applied_edits": list(checked.plan.applied)}
        if BINDING_BETA in checked.betas:
            message["input_transformations"] = list(checked.transformations)
        # A stream begins with the first pass, even if a later one writes the reply (recorded).
        start = {**passes[0].use.usage(), "output_tokens": 1, "service_tier": "standard"}
        return render(message, said, start, wanted, stream=stream)


def _usage(passes: Sequence[_Pass], said: Sequence[Said], checked: Checked) -> dict[str, Any]:
    """Return the usage report of a finished message: its top level excludes compaction."""
    replies = [one for one in passes if one.kind == "message"]
    usage = replies[-1].report() if replies else _Pass("", CacheUse(0), 0).report()
    del usage["type"]
    thinking = sum(_output_tokens(one) for one in said if one.block["type"] in THINKING_KINDS)
    usage |= {"output_tokens_details": {"thinking_tokens": thinking}, "service_tier": "standard"}
    if checked.betas & {THRESHOLD_BETA, DEMAND_BETA}:
        usage["iterations"] = [one.report() for one in passes]
    return usage


def _output_tokens(one: Said) -> int:
    return text_tokens(one.arguments or str(one.block.get("text") or one.block.get("thinking") or ""))


def _fitting_stop(said: Sequence[Said]) -> str:
    return "tool_use" if any(one.block["type"] == "tool_use" for one in said) else "end_turn"


def _parsed(arguments: str) -> Any:
    """Return the input of a call.

    If the arguments are truncated (`max_tokens`) or nested too deeply to be JSON, it is empty.
    """
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
