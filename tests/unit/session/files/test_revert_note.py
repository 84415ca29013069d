"""The notes on reverted changes: one text for the model, another for the user."""

from __future__ import annotations

import pytest

from codecompanion.session.files.revert_note import revert_note, sentence_for_user


@pytest.mark.parametrize(
    ("which", "back", "sentence"),
    [
        ("your change", False, "You reverted a change in calc.py."),
        ("your 2 changes", False, "You reverted 2 changes in calc.py."),
        ("a part of your change", True, "You reapplied part of a change in calc.py."),
        ("your changes", False, "You reverted changes in calc.py."),  # as written until 2026-11
    ],
)
def test_the_user_reads_a_plain_sentence(which, back, sentence):
    note = revert_note("calc.py", which, "m1", back=back)
    assert note.text.startswith(f"The user {note.tag} {which} of `calc.py`.")
    assert sentence_for_user(note) == sentence
