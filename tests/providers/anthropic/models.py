"""The models of the fake Messages server, and their entries in `/v1/models` (types `BetaModelInfo`, `ModelInfo`).

The accepted values are from the provider's pages on thinking, compaction and context windows (2026). Context windows
are smaller than the real ones where a test would otherwise have to send megabytes; `dataclasses.replace` sets others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelSpec:
    """One model. `window` and `max_output` in tokens.

    compacts: threshold compaction and on-demand compaction. thinking: accepted values of `thinking.type`. prefill:
    whether a request may end with an assistant message. binds_thinking: thinking blocks are refused when anything
    before them has changed ("preserved thinking"). refuses_overrun: prompt + `max_tokens` over the window is refused,
    as models before 4.5 do; newer ones stop with `model_context_window_exceeded`. system_messages: `role: system` is
    accepted between messages.
    """

    id: str
    window: int = 200_000
    max_output: int = 64_000
    compacts: bool = True
    thinking: tuple[str, ...] = ("enabled", "adaptive", "disabled")
    prefill: bool = False
    binds_thinking: bool = False
    refuses_overrun: bool = False
    system_messages: bool = False
    min_cached_tokens: int = 1024

    @property
    def max_images(self) -> int:
        """Return the maximum number of images per request: 100 for a window of 200,000 tokens, 600 for a larger one."""
        return 100 if self.window <= 200_000 else 600


SONNET = ModelSpec("claude-sonnet-4-6")
HAIKU = ModelSpec("claude-haiku-4-5", compacts=False, thinking=("enabled", "disabled"), prefill=True)
OPUS = ModelSpec(
    "claude-opus-5-5",
    window=1_000_000,
    max_output=128_000,
    thinking=("adaptive", "disabled"),
    binds_thinking=True,
    system_messages=True,
)
MODELS = (SONNET, HAIKU, OPUS)

_EDITS = ("clear_thinking_20251015", "clear_tool_uses_20250919")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def describe_model(model: ModelSpec, betas: frozenset[str]) -> dict[str, Any]:
    """Return the model's entry as the Models endpoint does.

    On-demand compaction is listed only with its beta header.
    """
    capabilities: dict[str, Any] = {
        name: _support(True)
        for name in ("batch", "citations", "code_execution", "image_input", "pdf_input", "structured_outputs")
    }
    capabilities |= {
        "context_management": {**dict.fromkeys(_EDITS, _support(True)), "compact_20260112": _support(model.compacts)}
        | _support(True),
        "effort": {**dict.fromkeys(_EFFORTS, _support("adaptive" in model.thinking))}
        | _support("adaptive" in model.thinking),
        "server_tools": {"code_execution": _support(True), "web_search": _support(True)} | _support(True),
        "thinking": {
            "types": {name: _support(name in model.thinking) for name in ("adaptive", "between_tools", "disabled")}
            | {"enabled": _support("enabled" in model.thinking)}
        }
        | _support(True),
    }
    if "compact-2026-09-04" in betas:
        capabilities["compaction"] = {"summarize": _support(model.compacts)} | _support(model.compacts)
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.id.replace("-", " ").title(),
        "created_at": "2026-02-17T00:00:00Z",
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": model.id.split("-")[1],
        "max_input_tokens": model.window,
        "max_tokens": model.max_output,
        "capabilities": capabilities,
    }


def list_models(models: tuple[ModelSpec, ...], betas: frozenset[str]) -> dict[str, Any]:
    """Return all models on one page."""
    entries = [describe_model(model, betas) for model in models]
    return {"data": entries, "has_more": False, "first_id": entries[0]["id"], "last_id": entries[-1]["id"]}


def _support(supported: bool) -> dict[str, bool]:
    return {"supported": supported}
