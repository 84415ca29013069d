"""What a question asks for, taken apart (issue 11)."""

from __future__ import annotations

import pytest

from codecompanion.retrieval.ranking.question import read_question


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
def test_what_looks_like_a_file_or_folders(text, paths):
    assert read_question(text).paths == paths
