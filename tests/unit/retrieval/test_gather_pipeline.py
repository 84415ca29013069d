"""The tables of gathering: parsed, validated, and marked where they differ from the document's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.errors import ConfigError
from codecompanion.formats.package_table import package_table
from codecompanion.model.gathered import Snippet
from codecompanion.retrieval import gather_pipeline
from codecompanion.retrieval.distinctive_words import has_hit, own_words
from codecompanion.retrieval.gather_pipeline import (
    NAMES,
    STRICT,
    PipelineName,
    load_pipeline,
    parameters_of,
    pipeline_from_table,
    word_of,
)
from codecompanion.retrieval.relevance import score_text
from codecompanion.retrieval.selection import common_within
from codecompanion.retrieval.smart_snippets import score_density, take_structures

FOLDER = Path(gather_pipeline.__file__).parent / "gather_pipelines"


def table(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the document's table with changed stages: each word maps to its new keys, or to None to omit the stage."""
    stages = [dict(stage) for stage in package_table("retrieval/gather_pipelines/document.toml")["stage"]]
    kept = [
        {**stage, **(changes.get(stage["use"]) or {})} for stage in stages if changes.get(stage["use"], {}) is not None
    ]
    return {"description": "x", "stage": kept}


@pytest.mark.parametrize("name", NAMES)
def test_each_stage_has_its_requirement_or_a_reason(name: PipelineName) -> None:
    blocks = FOLDER.joinpath(f"{name}.toml").read_text("utf-8").split("[[stage]]")[1:]
    assert len(blocks) == len(load_pipeline(name).stages)
    for block in blocks:
        assert "R-2" in block.partition("\n")[0] or "\nours = " in block


@pytest.mark.parametrize("name", NAMES)
def test_differences_from_the_document_are_marked(name: PipelineName) -> None:
    """Unmarked stages and parameters equal the document's; our stages name the stages that they replace."""
    document = {word_of(stage): stage for stage in load_pipeline(STRICT).stages}
    stages = load_pipeline(name).stages
    for stage in stages:
        word = word_of(stage)
        if isinstance(stage.ours, str) and stage.ours:
            assert word not in document
            continue
        differ = {field for field in parameters_of(stage) if getattr(stage, field) != getattr(document[word], field)}
        assert differ == set(stage.ours or ()), word
    replaced = {word for stage in stages for word in stage.instead}
    assert document.keys() - {word_of(stage) for stage in stages} == replaced


def test_the_strict_pipeline_excludes_our_additions() -> None:
    """R-236, R-243, R-248: the document's pipeline lists its additions to the document."""
    assert load_pipeline(STRICT).deviations() == ()
    said = {one.place: (one.ours, one.document) for one in load_pipeline("document").deviations()}
    assert said == {
        "search_definitions.max_files": (100, 0),
        "append_common_files.every_manifest": (True, False),
        "take_structures.until_next": (True, False),
        "take_structures.indented": (True, False),
        "fill_budget.cut_named": (True, False),
    }


@pytest.mark.parametrize(
    ("changed", "key", "said"),
    [
        ({"classify": {"by": "magic"}}, "mine.stage[0].by", "magic"),
        ({"find_terms": {"use": "guess"}}, "mine.stage[2].use", "guess"),
        ({"keep_first_of_file": {"least": 1}}, "mine.stage[6]", "least"),
        ({"keep_first_of_file": {"most": "many"}}, "mine.stage[6].most", "int"),
        ({"keep_first_of_file": {"ours": {"least": "why"}}}, "mine.stage[6].ours.least", "no such parameter"),
        ({"keep_first_of_file": {"document": {"least": 1}}}, "mine.stage[6].document.least", "no such parameter"),
        ({"search_cascade": None}, "mine.stage", "search_cascade, search_ranked"),
        ({"assemble": None}, "mine.stage", "assemble"),
    ],
)
def test_a_mistake_in_a_table_names_its_key(changed: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pipeline_from_table(table(changed), "mine")
    assert str(caught.value).startswith(key)
    assert said in str(caught.value)


def test_duplicate_or_late_stages_are_refused() -> None:
    whole = table({})
    stages = whole["stage"]
    for order, said in (([*stages, stages[-1]], "twice"), ([stages[1], stages[0], *stages[2:]], "too late")):
        with pytest.raises(ConfigError, match=said):
            pipeline_from_table({**whole, "stage": order}, "mine")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("which function validates the trigger in our codebase", ("validates", "trigger")),
        ("What is the architecture of this project?", ()),
        ("how does the app work", ()),
        ("explain the project structure", ()),
        ("How does authentication work in this project?", ("authentication",)),
    ],
)
def test_a_question_has_its_own_words(question: str, words: tuple[str, ...]) -> None:
    """R-236."""
    assert own_words(question) == words


def test_a_hit_has_the_weight_of_the_questions_words() -> None:
    words = ("validates", "trigger")
    assert has_hit(words, ["def validate_trigger(): ..."])
    assert not has_hit(words, ["nothing at all"])
    assert not has_hit((), ["anything"])
    rare = {"validates": 9.0, "trigger": 1.0}.__getitem__
    assert [has_hit(words, [text], rare) for text in ("the trigger", "it validates")] == [False, True]


def test_common_files_together_take_at_most_their_share() -> None:
    """R-236, ours."""
    text = "a line of text\n" * 90
    common = [Snippet(path=f"{n}.md", start=1, end=90, text=text, source="common") for n in range(3)]
    code = Snippet(path="a.py", start=1, end=1, text="x = 1")
    first, *shorter = common_within([*common, code], 120)
    assert first == code
    assert len(shorter) == 3
    assert sum(one.tokens for one in shorter) <= 120
    assert common_within([*common, code], 0) == [code]


CODE = "LIMIT = 1\n\n\ndef parse(text):\n    return text\n\n\ndef unrelated():\n    return 0\n"


def test_search_results_become_the_structures_around_them() -> None:
    """R-243, R-246: they have the file's line numbers.

    Results without a structure stay, as do those of other gatherers.
    """
    place = Snippet(path="a.py", start=11, end=19, text=CODE, score=0.8)
    element = msgspec.structs.replace(place, source="ast")
    plain = msgspec.structs.replace(place, text="nothing here", start=40, end=40)
    found = take_structures(score_density([place, element, plain], ("parse",)), ("parse",))
    assert [(one.start, one.end, one.name, one.source) for one in found] == [
        (14, 17, "parse", "search"),
        (11, 19, "", "ast"),
        (40, 40, "", "search"),
    ]
    assert [one.score for one in found] == [score_text(one.text, ("parse",)) for one in found]
    chosen = msgspec.structs.replace(place, is_selected=True, score=1.0)
    assert take_structures(score_density([chosen], ("parse",)), ("parse",)) == [chosen]
