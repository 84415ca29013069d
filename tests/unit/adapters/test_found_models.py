"""A model's facts found by one host are cached for the next one: importing the table takes 0.36 s of CPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecompanion.adapters import catalog, found_models
from codecompanion.adapters.found_models import MAX_ANSWERS, FoundModels, ModelFacts, read_found

ADDRESS = "https://sk-secret@gateway.example/v1?key=sk-secret"
LOOK = """
import sys
from pathlib import Path
from codecompanion.adapters import catalog
catalog.keep_in(Path(sys.argv[1]))
print(catalog.limits_of(sys.argv[2], "gpt-4.1"), catalog.limits_of(sys.argv[2], "no-such-model"))
catalog.keep(sys.argv[2], "gpt-4.1")
catalog.keep(sys.argv[2], "no-such-model")
print("genai_prices" in sys.modules)
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Reset the catalogue after each test."""
    yield
    catalog._found, catalog._file = FoundModels(""), None
    catalog.lookup.cache_clear()


def look(folder: Path) -> list[str]:
    """Look up two models in a separate process; return the result, and whether the table was imported."""
    command = [sys.executable, "-c", LOOK, str(folder), ADDRESS]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()


def test_the_next_host_does_not_import_the_table(tmp_path: Path) -> None:
    """The answers are identical, even for a model that is not in the table."""
    first, second = look(tmp_path), look(tmp_path)
    assert first[0] == second[0]
    assert first[0] == "ModelLimits(context_window=1000000, max_output_tokens=0) None"
    assert (first[1], second[1]) == ("True", "False")
    assert "sk-secret" not in (tmp_path / "models.json").read_text()


def test_another_version_of_the_table_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows and names change with it."""
    file = tmp_path / "models.json"
    read_found(file).add(file, ADDRESS, "m", ModelFacts(provider="p", model="m", context_window=7))
    assert read_found(file).get(ADDRESS, "m") == (ModelFacts(provider="p", model="m", context_window=7),)
    monkeypatch.setattr(found_models, "edition_of", lambda name: "0.0.0")
    assert read_found(file).get(ADDRESS, "m") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"edition": 1}', b"[" * 100_000])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    """It is a cache."""
    file = tmp_path / "models.json"
    file.write_bytes(content)
    found = read_found(file)
    assert found.answers == {}
    found.add(file, ADDRESS, "m", None)
    assert read_found(file).get(ADDRESS, "m") == (None,)


def test_the_cache_is_limited_and_needs_no_folder(tmp_path: Path) -> None:
    """An unwritable folder only disables the cache."""
    file = tmp_path / "models.json"
    for number in range(MAX_ANSWERS + 5):
        read_found(file).add(file, ADDRESS, f"m{number}", None)
    assert len(read_found(file).answers) == MAX_ANSWERS
    (tmp_path / "file").write_text("")
    read_found(tmp_path / "file" / "models.json").add(tmp_path / "file" / "models.json", ADDRESS, "m", None)
