"""Names of models in reports and findings."""

from __future__ import annotations

import pytest

from codecompanion.formats.model_name import model_name


@pytest.mark.parametrize(
    ("adapter", "model", "shown"),
    [("openai", "gpt-4.1", "openai · gpt-4.1"), ("openai", "", "openai"), ("offline", "offline", "offline")],
)
def test_a_name_that_both_share_is_shown_once(adapter: str, model: str, shown: str) -> None:
    assert model_name(adapter, model) == shown
