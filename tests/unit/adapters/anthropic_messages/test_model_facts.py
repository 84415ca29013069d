"""The sources of facts about a model, in this order: the listing, refusals, its name."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.adapters.anthropic_messages.model_facts import ModelFacts
from codecompanion.counting.model_windows import ModelLimits

NEW = (
    *("claude-opus-4-6", "claude-opus-5-5", "claude-sonnet-4-6", "claude-sonnet-5", "claude-haiku-5-5"),
    *("claude-fable-5-1", "claude-mythos-preview", "anthropic.claude-opus-4-7-v1", "anthropic/claude-sonnet-4.6"),
    "claude-opus-4-6-20260205",
)
OLD = ("claude-opus-4-5", "claude-sonnet-4-20250514", "claude-haiku-4-5-20251001", "claude-3-7-sonnet-20250219")


def model_list(**fields: object) -> bytes:
    return msgspec.json.encode({"data": [{"type": "model", "id": "claude-haiku-4-5-20251001", **fields}]})


def support(*, supported: bool) -> dict[str, bool]:
    return {"supported": supported}


@pytest.mark.parametrize("model", NEW)
def test_new_models_are_known_to_compact(model: str) -> None:
    """This covers the models in the provider's list, and later ones of their series."""
    assert ModelFacts().compacts(model, "threshold") is True
    assert ModelFacts().compacts(model, "on_demand") is True


@pytest.mark.parametrize("model", OLD)
def test_old_models_are_known_not_to_compact(model: str) -> None:
    """The client's compaction takes over (R-534)."""
    assert ModelFacts().compacts(model, "threshold") is False


@pytest.mark.parametrize("model", ["gpt-5", "deepseek-chat", "claude", ""])
def test_nothing_is_assumed_about_other_models(model: str) -> None:
    """A gateway may compact for them; its user configures that."""
    assert ModelFacts().compacts(model, "threshold") is None


def test_the_listing_is_believed() -> None:
    """It takes precedence over the name, both for the dated name and for its alias."""
    facts = ModelFacts()
    capabilities = {
        "context_management": {"supported": True, "compact_20260112": support(supported=True)},
        "compaction": {"supported": True, "summarize": support(supported=False)},
    }
    facts.read_model_list(model_list(max_input_tokens=200_000, max_tokens=64_000, capabilities=capabilities))
    for model in ("claude-haiku-4-5-20251001", "claude-haiku-4-5"):
        assert facts.compacts(model, "threshold") is True
        assert facts.compacts(model, "on_demand") is False
        assert facts.limits(model) == ModelLimits(200_000, 64_000)


@pytest.mark.parametrize(
    "capabilities", [None, {}, "x", {"context_management": None}, {"context_management": {"supported": True}}]
)
def test_an_incomplete_listing_leaves_the_name(capabilities: object) -> None:
    """Gateways list only ids."""
    facts = ModelFacts()
    facts.read_model_list(model_list(capabilities=capabilities))
    assert facts.compacts("claude-haiku-4-5-20251001", "threshold") is False
    assert facts.limits("claude-haiku-4-5-20251001") is None


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data": 3}', b'{"data": [{"id": 3}]}', b"<html>"])
def test_an_invalid_listing_teaches_nothing(body: bytes) -> None:
    """It does not cause an error either."""
    facts = ModelFacts()
    facts.read_model_list(body)
    assert facts.limits("m") is None


def test_a_refusal_is_remembered_for_its_model() -> None:
    """The refusal counts as new only once."""
    facts = ModelFacts()
    assert facts.learn("claude-opus-5", "threshold")
    assert not facts.learn("claude-opus-5", "threshold")
    assert facts.compacts("claude-opus-5", "threshold") is False
    assert facts.compacts("claude-opus-5", "on_demand") is True
    assert facts.has_quirk("claude-opus-5", "threshold")
    assert not facts.has_quirk("claude-sonnet-5", "threshold")


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-5-5", 64_000),
        ("claude-opus-4-20250514", 16_384),
        ("claude-3-7-sonnet-20250219", 16_384),
        ("claude-3-5-haiku-latest", 8_192),
        ("claude-3-opus-20240229", 4_096),
        ("some-other-model", 8_192),
    ],
)
def test_a_request_without_a_limit_gets_one(model: str, tokens: int) -> None:
    """The limit is small for models where prompt and limit together must fit the window."""
    assert ModelFacts().output_limit(model) == tokens


def test_a_listed_limit_is_used() -> None:
    """For old models, it is only used to reduce the limit."""
    facts = ModelFacts()
    entries = [{"id": "claude-opus-5", "max_tokens": 128_000}, {"id": "claude-opus-4-1", "max_tokens": 32_000}]
    facts.read_model_list(msgspec.json.encode({"data": entries}))
    assert facts.output_limit("claude-opus-5") == facts.largest_output("claude-opus-5") == 128_000
    assert facts.output_limit("claude-opus-4-1") == 16_384
