"""S4: single results that are too large (R-412…R-415)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.editing.truncate_tool_results import cut_text, shorten_result, truncate_tool_results
from codecompanion.context.strategy_parameters import TruncateToolResults
from codecompanion.context.work import Skipped, Work
from codecompanion.model.messages import ImagePart, TextPart, with_changes
from tests.unit.context.builders import assistant, chat, count, env, tool, user

NOTE = "\n\n[... content truncated due to length ...]"
DEFAULT = TruncateToolResults()
SMALL = TruncateToolResults(max_tokens=100, document_max=5000)


def truncate(messages, params=DEFAULT):
    work = Work(before=messages, messages=messages)
    return truncate_tool_results(work, params, env(messages, 200_000))


def answered(text, **fields):
    return chat(user("q"), assistant("", ("c", "t")), tool("c", text, **fields))


@pytest.mark.parametrize(("length", "kept"), [(40_000, None), (40_001, 39_900)])
def test_a_result_over_10_000_tokens_keeps_its_head(length, kept):
    """R-412, R-413, R-415: the limit is 40,000 characters, even in the newest message."""
    text = "ab\n" * 20_000
    work = truncate(answered(text[:length]))
    if kept is None:
        assert isinstance(work, Skipped)
        return
    result = work.messages[2]
    assert result.text == text[:kept] + NOTE
    assert result.edited
    assert result.tokens == len(result.text + "xxx") // 4
    assert work.details.tools_truncated == {
        "count": 1,
        "before": sum(m.tokens for m in map(counted, answered(text[:length]))),
        "after": sum(m.tokens for m in map(counted, work.messages)),
    }


def counted(message):
    return with_changes(message, tokens=count(message))


def test_a_json_list_keeps_its_first_items_and_the_total():
    """R-412."""
    items = [{"n": i} for i in range(2000)]
    shortened = shorten_result(json.dumps(items), TruncateToolResults(max_tokens=500))
    head, _, note = shortened.partition("\n\n")
    assert json.loads(head) == items[:50]
    assert note == "[... showing 50 of 2000 items ...]"


def test_a_list_whose_first_items_do_not_fit_is_truncated_as_text():
    """R-412: the rule is "first 50 items if that fits"."""
    text = json.dumps(["x" * 100] * 60)
    assert shorten_result(text, SMALL) == text[:300] + NOTE


def test_an_object_with_content_keeps_its_fields_and_half_of_its_content():
    """R-412: the result is serialised again, so it is valid JSON."""
    value = {"path": "a.py", "content": "y" * 4000, "lines": 3}
    shortened = json.loads(shorten_result(json.dumps(value), SMALL))
    assert shortened == {"path": "a.py", "content": "y" * 100 + NOTE, "lines": 3}


@pytest.mark.parametrize("kind", [{"format": "pdf"}, {"path": "Bericht.DOCX"}, {"type": "application/pdf"}])
def test_an_expanded_document_has_the_larger_limit(kind):
    """R-412: the limit is 30,000 tokens for docx, pdf and pptx; their content is truncated to limit − 1500."""
    within = json.dumps({**kind, "content": "y" * 100_000})
    assert shorten_result(within, DEFAULT) == within
    over = shorten_result(json.dumps({**kind, "content": "y" * 200_000}), DEFAULT)
    assert json.loads(over)["content"] == "y" * (28_500 * 4 - 100) + NOTE


def test_a_document_keeps_at_least_4000_tokens_of_content():
    """R-412."""
    over = shorten_result(json.dumps({"format": "pptx", "content": "y" * 60_000}), SMALL)
    assert json.loads(over)["content"] == "y" * (4000 * 4 - 100) + NOTE


def test_json_truncation_can_be_disabled():
    text = json.dumps({"content": "y" * 4000})
    params = TruncateToolResults(max_tokens=100, json_aware=False)
    assert shorten_result(text, params) == text[:300] + NOTE


def test_deeply_nested_json_is_text():
    text = "[" * 100_000
    assert shorten_result(text, SMALL) == text[:300] + NOTE


def test_images_of_a_truncated_result_stay():
    image = ImagePart(path="a.png")
    messages = answered("")
    messages = (*messages[:2], with_changes(messages[2], content=(TextPart("z" * 500), image)))
    result = truncate(messages, SMALL).messages[2]
    assert result.images == (image,)
    assert result.text == "z" * 300 + NOTE


def test_a_pinned_result_is_protected():
    """K8."""
    assert isinstance(truncate(answered("x" * 50_000, pinned=True)), Skipped)


@pytest.mark.slow("random results at every limit")
@settings(max_examples=200, deadline=None)
@given(
    value=st.one_of(
        st.text(max_size=400).map(lambda t: t * 9),
        st.recursive(st.text(max_size=80), lambda s: st.lists(s) | st.dictionaries(st.text(max_size=5), s)).map(
            json.dumps
        ),
        st.text(max_size=300).map(lambda t: json.dumps({"content": t * 5, "format": "x"})),
    ),
    limit=st.integers(0, 120),
)
def test_a_result_never_exceeds_its_limit_and_is_truncated_only_once(value, limit):
    """R-413 [proposed]."""
    params = TruncateToolResults(max_tokens=limit, document_max=limit)
    shortened = shorten_result(value, params)
    assert len(shortened) <= max(limit * 4, 0)
    assert shorten_result(shortened, params) == shortened
    assert len(cut_text(value, limit)) <= limit * 4
