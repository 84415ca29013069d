"""R-212: five kinds of question."""

from __future__ import annotations

import pytest

from codecompanion.model.gathered import QuestionTypes
from codecompanion.retrieval.question_type import types_as_json, types_by_words, types_of_reply


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("the tests crash", "Debugging"),
        ("add a button", "Feature Request"),
        ("describe it", "Code Explanation"),
        ("the architecture", "Architectural"),
        ("which algorithm is it", "Implementation"),
        ("explain the architecture", "Architectural + Code Explanation"),
        ("how is the error handled", "Implementation + Debugging"),
        ("hello there", "General Inquiry"),
        ("address the padding of the nation", "General Inquiry"),
        ("it doesn’t work", "Debugging"),
        ("", "General Inquiry"),
    ],
)
def test_words_determine_the_kind(question: str, name: str) -> None:
    assert types_by_words(question).name == name


def test_an_empty_text_has_no_kind() -> None:
    assert types_by_words(None) == QuestionTypes()


def test_a_model_determines_the_kind() -> None:
    """Fences are removed; a kind that the reply does not name is false."""
    found = types_of_reply('```json\n{"isDebugging": true, "isFeatureRequest": true, "isImplementation": false}\n```')
    assert found == QuestionTypes(is_debugging=True, is_feature_request=True)
    assert found.name == "Debugging + Feature Request"


@pytest.mark.parametrize("reply", ["", "{}", "[true]", '{"isDebugging": "yes"}', '{"debugging": true}', "no"])
def test_an_invalid_reply_is_ignored(reply: str) -> None:
    assert types_of_reply(reply) is None


def test_the_names_equal_the_documents() -> None:
    assert types_as_json(QuestionTypes(is_architectural=True)) == {
        "isImplementation": False,
        "isArchitectural": True,
        "isDebugging": False,
        "isCodeExplanation": False,
        "isFeatureRequest": False,
    }
