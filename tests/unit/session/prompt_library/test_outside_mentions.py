"""Mentions beyond the project in outside text are found, however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.retrieval.mentions import mentions_in
from codecompanion.session.prompt_library.outside_mentions import OUTSIDE, SECRET, beyond


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src/a.py").write_text("x\n")
    (root / ".env").write_text("KEY=1\n")
    (tmp_path / "other file.txt").write_text("x\n")
    (root / "link").symlink_to(tmp_path / "other file.txt")
    return root


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("#{file:/etc/passwd}", OUTSIDE),
        ("#{ File : /etc/passwd }", OUTSIDE),
        ("#{file:../other file.txt}", OUTSIDE),
        ("#{file:/etc/passwd:1-3}", OUTSIDE),
        ("#{file:~/.ssh/id_rsa}", OUTSIDE),
        ("#{file:link}", OUTSIDE),
        ("#{file:src/../../x}", OUTSIDE),
        ("#{file:a\x00b}", OUTSIDE),
        ("#{file:.env}", SECRET),
        ("@.env", SECRET),
        ("@`.env`", SECRET),
        ("@/etc/passwd", OUTSIDE),
        ('@"../other file.txt"', OUTSIDE),
        ("@link:1-2", OUTSIDE),
    ],
)
@pytest.mark.parametrize("text", ["{}", "see {} please", "```\n{}\n", "a ` b {} c"])
def test_paths_outside_or_secret_are_named_as_written(project, written, why, text):
    assert beyond(text.format(written), str(project)) == {written: why}


@pytest.mark.parametrize(
    "text",
    [
        "#{file:src/a.py}", "#{file:src/a.py:1-3}", "@src/a.py", "@src/a.py:3", "@property", "@dataclass(frozen=True)",
        "me@example.org", "@/no/such/file", "#{buffer}", "nothing", "#{file:}",
    ],
)  # fmt: skip
def test_paths_inside_the_project_are_ignored(project, text):
    assert beyond(text, str(project)) == {}


def test_a_space_ends_a_mention():
    """The editor parses mentions this way."""
    for written in ("#{file:/etc/passwd}", "@/etc/passwd", '@"../other file.txt"', "@`.env`"):
        spaced = written[0] + " " + written[1:]
        assert not mentions_in(f"see {spaced} now")
