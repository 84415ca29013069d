"""Answers about files: by path and content, in one form for rules, prompts and servers."""

from __future__ import annotations

import msgspec

from codecompanion.session.permits import KEPT, Permits, read_permits


def test_an_answer_is_about_a_path_and_its_content() -> None:
    permits = Permits().with_answer([("/a", "1"), ("/b", "1")], allowed=True).with_answer([("/b", "2")], allowed=False)
    assert permits.state_of("/a", "1") == "allowed"
    assert permits.state_of("/b", "2") == "refused"
    assert permits.state_of("/b", "1") == permits.state_of("/a", "2") == permits.state_of("/c", "1") == "unasked"


def test_a_path_whose_answer_is_forgotten_is_asked_about_again() -> None:
    permits = Permits().with_answer([("/a", "1"), ("/b", "1")], allowed=True)
    assert permits.without(["/a"]) == Permits().with_answer([("/b", "1")], allowed=True)


def test_the_oldest_answers_go_first() -> None:
    permits = Permits()
    for number in range(KEPT + 1):
        permits = permits.with_answer([(f"/{number}", "1")], allowed=True)
    assert len(permits.answers) == KEPT
    assert permits.state_of("/0", "1") == "unasked"
    assert permits.state_of(f"/{KEPT}", "1") == "allowed"


def test_what_is_stored_is_read_again_and_what_cannot_be_read_is_asked_again() -> None:
    permits = Permits().with_answer([("/a", "1")], allowed=False)
    assert read_permits(permits.as_text()) == permits
    earlier = msgspec.json.encode({"files": {"/a": ["1", True]}}).decode()
    for text in ("", "{", "[]", earlier, "\ud800"):
        assert read_permits(text) == Permits()
