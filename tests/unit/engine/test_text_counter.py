"""The option `tokenizer`: exact local counts if enabled (architecture.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion import settings
from codecompanion.counting import tokens
from codecompanion.engine.runtime import Runtime
from codecompanion.wire.requests import Hello


def hello(root: Path, tokenizer: str) -> Hello:
    """Return the first request of an editor with this option."""
    given = settings.defaults()
    given["chat"]["tokenizer"] = tokenizer
    folders = {"data_dir": str(root / "data"), "cache_dir": str(root / "cache"), "log_path": str(root / "log")}
    return Hello(settings=given, nvim="0.11", **folders)


async def test_tiktoken_counts_if_enabled(tmp_path: Path) -> None:
    """Nothing is downloaded: the vocabulary comes with a package and is copied into our own cache folder."""
    host = Runtime(lambda event: None)
    await host.handle(hello(tmp_path, "exact"))
    assert host.services.count_text("antidisestablishmentarianism") == 6
    assert any((tmp_path / "cache").rglob("fb374d419588a4632f3f557e76b4b70aebbca790"))
    await host.aclose()


async def test_the_estimate_is_the_default_and_touches_no_cache(tmp_path: Path) -> None:
    host = Runtime(lambda event: None)
    await host.handle(hello(tmp_path, settings.defaults()["chat"]["tokenizer"]))
    assert host.services.count_text is tokens.estimate_text
    assert not (tmp_path / "cache").exists()
    await host.aclose()


async def test_an_unavailable_vocabulary_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host does not wait for a download; counts are estimated instead."""
    told: list[object] = []
    monkeypatch.setattr("codecompanion.store.vocabulary.load_encoder", lambda cache_dir, name: None)
    host = Runtime(told.append)
    await host.handle(hello(tmp_path, "exact"))
    assert host.services.count_text is tokens.estimate_text
    assert any("token counts are estimated" in str(event) for event in told)
    await host.aclose()
