"""R-204 … R-211: classification by the words of a question, or by a model's reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats.package_table import package_table
from codecompanion.model.gathered import Classification
from codecompanion.retrieval.classifier import classification_of_reply, classify_by_words
from codecompanion.retrieval.word_forms import edits_within, is_same_word, stem

ABOUT_THE_PROJECT = {
    "How does authentication work in this project?": "authentication",
    "Where is the database connection configured?": "database",
    "Why does the login test fail?": "testing",
    "fix the bug in parser": "debugging",
    "What does parse_config do?": "configuration",
    "Refactor the request handler to use async": "api",
    "How are sessions stored?": "authentication",
    "explain the architecture": "architecture",
    "Add a dark mode option to the settings page": "configuration",
    "why is my build broken": "debugging",
    "Where do we validate user input?": "general",
    "which files handle routing?": "api",
    "how do I run the unit tests": "testing",
    "What does getUserById return": "general",
    "Make the buffer redraw only once": "frontend",
    "TypeError: undefined is not a function": "debugging",
    "rename the variable x in main.py": "implementation",
    "how is the token budget of a request computed": "api",
    "add support for streaming responses": "feature",
    "autentication": "authentication",
    "the databse is empty": "database",
    "How does the client handle redirects?": "api",
    "why is the timeout ignored when a proxy is set": "backend",
    "where's the config loaded": "configuration",
    "what is the entry point": "general",
}
ABOUT_SOMETHING_ELSE = (
    *("What is the capital of France?", "Write me a poem about the sea", "Tell me a joke", "How do I cook rice?"),
    *("How does photosynthesis work?", "What is the best house to buy?", "Explain quantum computing", "Hello!"),
    *("What is the weather like in London?", "Who won the world cup in 2018?", "thanks, that helps", "define entropy"),
    *("What is the difference between TCP and UDP?", "Recommend a good movie for tonight", "what is MCP?"),
    *("What is the rest of the story", "the quick brown fox jumps over the lazy dog", "Plan a trip to Japan"),
    *("my client asked for a refund, how should I respond", "What is the difference between a list and a tuple?"),
    *("Help me write an email to my landlord", "Is JavaScript older than me", "When was the French revolution?"),
)

ASKED_OF_A_PROJECT = (
    *("how are redirects followed", "is there a retry mechanism", "how do I run this"),
    *("what happens when the socket closes", "why do we get a 500 error", "convert this to async"),
    *("how does pagination work here", "add type hints", "review my changes", "make the sidebar wider"),
    *("the button color is wrong", "upgrade to python 3.12", "does it support http2?", "how does auth work"),
    *("why is my login slow", "improve performance", "why does the test not pass"),
    *("why is the connection not closed after an error", "what happens when the connection drops"),
    *("fix the off by one in pagination", "what would break if I removed the lock"),
    *("why does the app not call the api",),
    *("What frameworks are used here?", "explain the auth flow", "what is the structure of src/"),
    *("Why is this function so slow?", "What happens when the websocket disconnects?", "what happens on a timeout"),
    *("The API returns 500 when I post a user", "can you explain the http adapter", "how are migrations applied"),
    *("where does the logger get its format", "what is the data model", "how does caching work here"),
    *("is there a rate limiter?", "change the default port", "make the tests faster", "who calls Session.close?"),
    *("fix this", "what does this do", "explain how sessions are persisted", "why does mypy complain"),
    *("explain the type annotations in this file", "where do the snapshots of the buffer come from"),
)
GENERAL_KNOWLEDGE = (
    *("why is the sky blue", "how do I boil an egg", "what happens when the moon blocks the sun"),
    *("why do we get hiccups", "convert 5 miles to km", "convert this to French", "make the soup spicier"),
    *("upgrade my flight to business class", "does it support weight loss", "does it rain in Seattle"),
    *("how does the stock market work", "how does electricity work", "how does it work when you buy a house"),
    *("is there a god", "is there a restaurant nearby", "is there life on Mars", "add salt to the list"),
    *("review my essay", "review the movie Inception", "why is my dog tired", "why is my coffee bitter"),
    *("improve my vocabulary", "improve my sleep", "how do I run a marathon", "how do I run faster"),
    *("the color of the sky is wrong in this painting", "how are clouds formed", "how are babies made"),
    *("how are rules followed in chess", "what happens when water freezes", "what happens after death"),
    *("why do we get old", "how does inflation work", "make the text sound friendlier"),
    *("convert celsius to fahrenheit", "add two and two", "should I upgrade my phone"),
    *("why did the roman empire not survive", "what not to eat before running", "why is the sea not sweet"),
    *("how does a retry of an exam work", "upgrade to windows 11", "upgrade my phone to android 15"),
    *("how does the heart work", "how are laws passed", "review my CV", "why is my internet slow"),
    *("why is my wifi slow", "improve my performance at work", "is there a cure for the flu"),
    *("what is the performance of tesla stock",),
    *("where do penguins live", "where do babies come from", "what is the process for getting a passport"),
    *("my scheduler at work is full", "the interior decorator was late", "explain the plot of Inception"),
    *("what is the structure of DNA", "what happens on Christmas", "explain this poem", "fix my marriage"),
    *("what technologies are used in modern cars", "which country is used to rain and/or snow"),
)


@pytest.mark.parametrize("question", ASKED_OF_A_PROJECT)
def test_real_questions_about_a_project_are_recognised(question: str) -> None:
    """R-207; R-208 with one exception: after `why`, `not` excludes nothing."""
    assert classify_by_words(question).is_codebase_related


@pytest.mark.parametrize("question", GENERAL_KNOWLEDGE)
def test_the_same_words_on_another_subject_are_rejected(question: str) -> None:
    """R-207: a project's code must not precede such a question."""
    assert not classify_by_words(question).is_codebase_related


@pytest.mark.parametrize(("question", "category"), ABOUT_THE_PROJECT.items())
def test_a_question_about_the_project_is_recognised(question: str, category: str) -> None:
    """R-207, R-209, R-210: the category is found, too."""
    found = classify_by_words(question)
    assert found.is_codebase_related
    assert category in found.categories
    assert 1 <= len(found.categories) <= 5
    assert found.source == "keywords"


@pytest.mark.parametrize("question", [*ABOUT_SOMETHING_ELSE, "", "  \n", None, 7, ["how does the database work"]])
def test_a_question_about_something_else_or_nothing_is_rejected(question: object) -> None:
    """R-207, R-209: the result is `{false, [], "low"}`."""
    assert classify_by_words(question) == Classification(is_codebase_related=False, categories=(), confidence="low")


@pytest.mark.parametrize(
    ("question", "is_related"),
    [
        ("explain the login, not the database", False),
        ("explain the login without any big database", False),
        ("explain the login without any such very database", True),
        ("avoid databse talk about the login of this project", False),
        ("no tests please, explain the login of this project", False),
        ("exclude the endpoints of this project", False),
        ("the login of this project is not slow", True),
        ("does the login note the database", True),
    ],
)
def test_a_keyword_within_three_words_after_a_negation_does_not_count(question: str, is_related: bool) -> None:
    """R-208: the range is exactly three words, even if the first of them is another negation."""
    assert classify_by_words(question).is_codebase_related is is_related


@pytest.mark.parametrize(
    ("question", "confidence"),
    [
        ("authentication", "medium"),  # 1 keyword + 2 for the strong indicator
        ("cookie socket", "low"),  # 2 keywords
        ("cookie socket widget", "medium"),  # 3 keywords
        ("cookie socket widget daemon fixture", "high"),  # 5 keywords
        ("where is it stored", "medium"),  # 1 pattern
        ("where is the cookie and the widget stored", "high"),  # 1 pattern + 2 keywords
    ],
)
def test_points_determine_the_confidence(question: str, confidence: str) -> None:
    """R-209: 3 points per pattern, 1 per keyword, 2 for a strong indicator; 5 points mean high, 3 medium."""
    assert classify_by_words(question).confidence == confidence


def test_categories_are_sorted_by_the_number_of_their_keywords() -> None:
    """R-209."""
    found = classify_by_words("jest mocks and fixtures for the sqlite socket of the test")
    assert found.categories[0] == "testing"
    assert set(found.categories) >= {"database", "backend"}


def test_the_word_lists_equal_the_documents() -> None:
    """R-207: 16 patterns; R-208: five negations; R-210: ten categories, debugging and feature."""
    table = package_table("retrieval/question_words.toml")
    assert len(package_table("retrieval/question_patterns.toml")["patterns"]) == 16
    assert table["negations"].split() == ["not", "no", "without", "exclude", "avoid"]
    assert set(table["categories"]) == {
        *("authentication", "api", "database", "architecture", "configuration", "implementation", "testing"),
        *("frontend", "backend", "general", "debugging", "feature"),
    }


@pytest.mark.parametrize(
    ("word", "keyword", "is_same"),
    [
        ("tests", "test", True),
        ("testing", "test", True),
        ("rest", "test", False),  # 4 letters: not treated as a typo
        ("the", "test", False),
        ("latest", "test", False),
        ("databse", "database", True),
        ("dtabas", "database", True),
        ("dtabs", "database", False),  # three edits
        ("databases_v2", "database", True),
        ("authenticated", "authentication", True),
        ("config", "configuration", True),
        ("press", "expression", False),
        ("apis", "api", True),
        ("queries", "query", True),
    ],
)
def test_two_words_are_matched_as_one(word: str, keyword: str, is_same: bool) -> None:
    """R-207, R-211: by their stems, if one contains the other, or up to two edits apart from five letters on."""
    assert is_same_word(word, keyword) is is_same


@given(st.text("abcdé", max_size=8), st.text("abcdé", max_size=8))
def test_edit_distances_equal_levenshteins(one: str, other: str) -> None:
    """The results are compared with those of the plain recursion."""

    def distance(a: int, b: int, known: dict[tuple[int, int], int]) -> int:
        if (a, b) not in known:
            known[a, b] = (
                max(a, b)
                if not a or not b
                else min(
                    distance(a - 1, b, known) + 1,
                    distance(a, b - 1, known) + 1,
                    distance(a - 1, b - 1, known) + (one[a - 1] != other[b - 1]),
                )
            )
        return known[a, b]

    assert edits_within(one, other, 2) is (distance(len(one), len(other), {}) <= 2)


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=20))
def test_a_stem_is_a_meaningful_prefix(word: str) -> None:
    assert word.startswith(stem(word))
    assert len(stem(word)) >= min(len(word), 3)


@given(st.text(max_size=300))
def test_any_question_has_a_classification(question: str) -> None:
    """Categories and confidence agree with the answer, whatever is asked (R-204)."""
    found = classify_by_words(question)
    assert bool(found.categories) is found.is_codebase_related
    assert len(found.categories) <= 5
    assert found.is_codebase_related or found.confidence == "low"


@pytest.mark.parametrize(
    "question", ["x" * 1_000_000, "a b " * 250_000, "(" * 1_000_000, "_a" * 500_000, "\0" * 9, "كيف تعمل", "认证"]
)
def test_unusual_input_is_classified_too(question: str) -> None:
    """Only the head and tail of a long text are read."""
    assert classify_by_words(question).confidence in ("high", "medium", "low")


RELATED = '{"isCodebaseRelated": true, "categories": ["api"], "confidence": "high"}'


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (RELATED, (True, ("api",), "high")),
        (f"```json\n{RELATED}\n```", (True, ("api",), "high")),
        (f"```\n{RELATED}```", (True, ("api",), "high")),
        (f" JSON {RELATED} ", (True, ("api",), "high")),
        ('{"isCodebaseRelated": false, "categories": ["x"], "confidence": "high"}', (False, (), "high")),
        ('{"isCodebaseRelated": true, "categories": [], "confidence": "low"}', (True, ("general",), "low")),
        ('{"isCodebaseRelated": true}', (True, ("general",), "medium")),
        ('{"isCodebaseRelated": true, "confidence": "certain"}', (True, ("general",), "medium")),
        ('{"isCodebaseRelated": true, "confidence": 0.9}', (True, ("general",), "medium")),
        ('{"isCodebaseRelated": true, "categories": ["a",1,"b","b","c","d","e","f"], "confidence": "High"}',
         (True, ("a", "b", "c", "d", "e"), "high")),
    ],
)  # fmt: skip
def test_a_models_reply_is_parsed(reply: str, expected: tuple[bool, tuple[str, ...], str]) -> None:
    """R-204, R-205: fences and the word json are removed; an unknown confidence is medium."""
    found = classification_of_reply(reply)
    assert found is not None
    assert (found.is_codebase_related, found.categories, found.confidence) == expected
    assert found.source == "model"


@pytest.mark.parametrize(
    "reply",
    [
        *("", "yes", "{}", "[]", "null", '"isCodebaseRelated"', '{"isCodebaseRelated": "true"}', "{" * 100_000),
        *('{"isCodebaseRelated": 1}', '{"isCodebaseRelated": true, "categories": "api"}', "```json```", RELATED[:-3]),
    ],
)
def test_an_invalid_classification_is_ignored(reply: str) -> None:
    """R-205: the classification by words is used instead."""
    assert classification_of_reply(reply) is None


def test_a_confidence_has_a_number() -> None:
    """R-206."""
    values = [Classification(confidence=name).confidence_value for name in ("high", "medium", "low")]
    assert values == [0.9, 0.7, 0.4]
    assert Classification(confidence="sure").confidence_value == 0.7
