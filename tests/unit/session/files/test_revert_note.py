"""The notes on reverted changes: the model reads all of them, the user only about missing changes."""

from __future__ import annotations

import pytest

from codecompanion.session.files.revert_note import missing_note, revert_note, sentence_for_user


@pytest.mark.parametrize("back", [False, True])
def test_only_the_model_reads_about_a_revert(back):
    """The user has just pressed its key: the row of the call and a message show it."""
    note = revert_note("calc.py", "your 2 changes", "m1", back=back)
    assert note.text.startswith(f"The user {note.tag} your 2 changes of `calc.py`.")
    assert sentence_for_user(note) == ""


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("your change", "calc.py no longer has the change."),
        ("your 2 changes", "calc.py no longer has the 2 changes."),
        ("a part of your change", "calc.py no longer has part of the change."),
    ],
)
def test_the_user_reads_a_plain_sentence_about_missing_changes(which, sentence):
    assert sentence_for_user(missing_note("calc.py", which, "m1")) == sentence
