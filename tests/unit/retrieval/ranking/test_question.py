"""Parsing a question into its subject."""

from __future__ import annotations

import pytest

from codecompanion.retrieval.ranking.question import asking_words, read_question


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("why is src/a.b.py slow", ("src/a.b.py",)),
        ("in foo.py/bar/baz and /usr//lib/x", ("foo.py", "bar/baz", "lib/x")),
        ("a.toolong and .hidden, x.y.", ("x.y",)),
        ("docs/README", ("docs/readme",)),
        ("-" * 4000, ()),
    ],
)
def test_lookalikes_of_files_and_folders_are_found(text, paths):
    assert read_question(text).paths == paths


def test_a_common_question_word_counts_if_it_is_a_name() -> None:
    text = "explain how Explain reads large plans"
    assert asking_words(text) == ["explain", "how"]
    plain, here = read_question(text), read_question(text, {"explain"})
    assert "explain" not in plain.words
    assert "explain" in here.words
    assert ("Explain" in plain.names, "Explain" in here.names) == (False, True)
