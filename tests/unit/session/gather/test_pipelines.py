"""Both pipelines in a folder and in a chat: the effect of each stage in their tables."""

from __future__ import annotations

import time

import msgspec
import pytest

from codecompanion import settings
from codecompanion.cli.pipeline_option import hybrid_of
from codecompanion.engine.configured import _check_gathering
from codecompanion.model.found_code import COMMON, FoundCode
from codecompanion.retrieval.gather_pipeline import GatherPipeline, load_pipeline, word_of
from codecompanion.retrieval.relevance import score_text
from codecompanion.retrieval.search_terms import simple_terms
from codecompanion.session.actions.choose_policy import choose_policy
from codecompanion.session.code.indexing import build
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_options import search_options
from codecompanion.session.codebase.gatherer import Question
from codecompanion.session.gather.chat_gatherer import ProjectGatherer
from codecompanion.session.gather.index_search import IndexSearch
from tests.unit.session.gather import test_gather_code
from tests.unit.session.gather.test_gather_code import PARSER, FakeSearch, ask, places, resources
from tests.unit.session.message_context.test_gathering import FakeGatherer, asked, bench_with
from tests.unit.session.message_context.test_gathering import ask as message

project = test_gather_code.project
METHODS = "".join(f"    def parse_{n}(self, text):\n        return text.split('{n}')\n\n" for n in range(40))
QUESTION = "How does parse_config of the codebase work?"


@pytest.fixture
async def index(project, tmp_path):
    (project / "src/box.py").write_text(f"class Parser:\n{METHODS}")
    (project / "README.md").write_text("# the example\n" * 300)
    made = ProjectIndex(project, tmp_path / "cache")
    build(made.root, made.path, made.choice, now_ns=time.time_ns)
    yield made
    await made.close()


async def test_the_document_scores_by_density_and_fills_greedily(project, index):
    """R-246, R-247, R-252: the best snippets come first, there is no map, and the format comes last."""
    found = await ask(project, QUESTION, by=resources(IndexSearch(index)), pipeline="document", budget=600)
    chosen, keywords = found.selection, simple_terms(QUESTION)
    assert chosen.snippets
    assert all(one.score in (score_text(one.text, keywords), 0.3) for one in chosen.snippets)
    assert [one.score for one in chosen.snippets] == sorted((one.score for one in chosen.snippets), reverse=True)
    assert chosen.total_tokens <= 600
    assert "## Map" not in found.text
    assert "\n\n## Format\n\n" in found.text
    ranked = await ask(project, QUESTION, by=resources(IndexSearch(index)), budget=600)
    assert "\n\n## Format\n\n" in ranked.text


async def test_common_files_follow_the_document_or_our_bounds(project, index):
    """R-236: the document appends them to a broad question; ours omits them beside hits for the question's words."""
    search = resources(IndexSearch(index))
    document = await ask(project, QUESTION, by=search, pipeline="document")
    assert "pyproject.toml" in {one.path for one in document.found if one.source == "common"}
    ranked = await ask(project, QUESTION, by=search)
    assert [one for one in ranked.found if one.source == "common"] == []
    whole = await ask(project, "What is the architecture of this project?", by=search, budget=800)
    common = [one for one in whole.selection.snippets if one.source == "common"]
    assert 0 < sum(one.tokens for one in common) <= 100
    assert whole.selection.snippets[-len(common) :] == tuple(common)


@pytest.mark.parametrize("pipeline", ["ranked", "document"])
async def test_the_users_own_files_come_first(project, index, pipeline):
    """R-213, R-214: the document puts the active file before the named ones."""
    files = {"files": ("src/other.py",), "active": "docs/parser.py"}
    found = await ask(project, QUESTION, by=resources(IndexSearch(index)), pipeline=pipeline, **files)
    order = ["src/other.py", "docs/parser.py"]
    assert [one[0] for one in places(found)[:2]] == (order if pipeline == "ranked" else order[::-1])


async def test_the_hybrid_search_options_apply_only_to_the_documents_pipeline(project):
    """R-228."""
    hybrid = hybrid_of({"top_k": 3, "mmr": {"enabled": True}}, "document")
    for pipeline, expected in (("document", ("hybrid", 3, True)), ("ranked", ("auto", 12, False))):
        search = FakeSearch(FoundCode("src/other.py", 1, 2, 0.5, f"fts{COMMON}"))
        await ask(project, QUESTION, by=resources(search, hybrid=hybrid), pipeline=pipeline)
        assert (search.options.tier, search.options.top_k, search.options.hybrid.mmr) == expected
    assert search_options(load_pipeline("document"), hybrid).most == 15


@pytest.mark.parametrize("tokens", [1, 40, 150, 400])
async def test_the_documents_text_fits_the_rest_of_the_window(project, index, tokens):
    """A request never exceeds the window, strict or not."""
    found = await ask(project, QUESTION, by=resources(IndexSearch(index)), pipeline="document", max_tokens=tokens)
    assert found.failed == {}
    assert len(found.text) <= 4 * tokens


BOX = "class Box:\n    def parse_config(self):\n        return 1\n"
SCENES = {
    "search_definitions.max_files": ("parse_config quagga", {"always": True}),
    "append_common_files.every_manifest": (QUESTION, {}),
    "take_structures.until_next": ("parse_config", {"always": True, "found": PARSER}),
    "take_structures.indented": ("parse_config", {"always": True, "found": BOX}),
    "fill_budget.cut_named": ("parse_config", {"always": True, "files": ("src/parser.py",), "budget": 25}),
}
"""Mark of the document's table → a question for which it makes a difference; `found`: a file that the search found."""


def without_mark(place: str) -> GatherPipeline:
    """Return the document's pipeline with the document's value for one parameter."""
    pipeline = load_pipeline("document")
    [mark] = [one for one in pipeline.deviations() if one.place == place]
    word, _, parameter = place.partition(".")
    stages = (
        msgspec.structs.replace(one, **{parameter: mark.document}) if word_of(one) == word else one
        for one in pipeline.stages
    )
    return msgspec.structs.replace(pipeline, stages=tuple(stages))


@pytest.mark.parametrize("place", [one.place for one in load_pipeline("document").deviations()])
async def test_each_mark_changes_the_result_and_strict_omits_it(project, index, monkeypatch, place):
    """R-236, R-243, R-248, R-221: the result differs without the mark, and under `strict`."""
    question, given = SCENES[place]
    given = dict(given)
    text = given.pop("found", None)
    if place == "search_definitions.max_files":
        for number in range(110):
            (project / f"src/part{number:03}.py").write_text("# parse_config quagga\nx = 1\n")
    search = IndexSearch(index) if text is None else FakeSearch(FoundCode("src/x.py", 1, 9, 0.5, "fts", text=text))

    async def gathered(pipeline):
        found = await ask(project, question, by=resources(search), pipeline=pipeline, **given)
        assert found.failed == {}
        return places(found), {(one.path, one.start, one.source) for one in found.found}, found.notes

    ours, strict = await gathered("document"), await gathered("document strict")
    monkeypatch.setattr(test_gather_code.gathering, "load_pipeline", lambda name: without_mark(place))
    assert ours != await gathered("document")
    assert ours != strict


async def test_a_named_file_that_does_not_fit_is_dropped_under_strict(project, index):
    """R-248: it is also reported; our own pipeline truncates it instead."""
    given = {"always": True, "files": ("src/parser.py",), "budget": 25}
    strict = await ask(project, "parse_config", by=resources(IndexSearch(index)), pipeline="document strict", **given)
    assert "src/parser.py" in {one.snippet.path for one in strict.selection.dropped if one.snippet.is_selected}
    assert strict.notes == ("src/parser.py was not sent: the budget is used up.",)
    assert strict.selection.total_tokens <= 25


async def test_excluded_code_stays_excluded_in_both(project, index):
    search = resources(IndexSearch(index))
    for pipeline in ("ranked", "document"):
        found = await ask(project, QUESTION, by=search, pipeline=pipeline)
        first = next(one for one in found.selection.snippets if one.path == "src/parser.py")
        piece = test_gather_code.ChosenPiece(path=first.path, name=first.name, kind=first.kind, start=first.start)
        without = await ask(project, QUESTION, by=search, pipeline=pipeline, left_out=(piece,))
        assert (first.path, first.start) not in {(one.path, one.start) for one in without.selection.snippets}


@pytest.mark.parametrize(
    ("policy", "pipeline"), [("codebuddy", ""), ("codebuddy strict", "document strict"), ("cowork strict", "")]
)
async def test_a_strict_codebuddy_gathers_like_its_document(tmp_path, policy, pipeline):
    root = tmp_path / "project"
    root.mkdir()
    gatherer = FakeGatherer()
    bench, session = await bench_with(root, gatherer)
    await choose_policy(session, policy)
    await asked(bench, session, message("how does it work in our code"))
    assert [one.pipeline for one in gatherer.questions] == [pipeline]


@pytest.mark.parametrize(
    ("options", "policy", "named"),
    [
        ({}, "codebuddy", ()),
        ({"hybrid": {"top_k": 5, "decay": {"enabled": True}}}, "codebuddy", ("top_k", "decay.enabled")),
        ({"hybrid": {"top_k": 5}}, "codebuddy strict", ()),
        ({"hybrid": {"top_k": 5}, "pipeline": "document"}, "codebuddy", ()),
    ],
)
async def test_options_that_no_pipeline_reads_are_reported(tmp_path, options, policy, named):
    """R-228."""
    root = tmp_path / "project"
    root.mkdir()
    bench, _ = await bench_with(root, FakeGatherer())
    chat = msgspec.structs.replace(bench.services.settings.chat, policy=policy)
    given = {**options, "hybrid": hybrid_of(options.get("hybrid"), "document")}
    context = msgspec.structs.replace(settings.load({}).context, **given)
    bench.services.settings = msgspec.structs.replace(bench.services.settings, chat=chat, context=context)
    before = len(bench.services.mistakes)
    _check_gathering(bench.services)
    said = bench.services.mistakes[before:]
    assert {one.partition(":")[0] for one in said} == {f"context.hybrid.{name}" for name in named}


async def test_a_chat_uses_the_configured_pipeline(project, index):
    """The pipeline is `context.pipeline`, unless the policy names one."""

    async def of(root):
        return index

    for configured, wanted, has_all in (("ranked", "", False), ("document", "", True), ("ranked", "document", True)):
        now = resources(pipeline=configured).settings
        gatherer = ProjectGatherer(lambda now=now: now, lambda: None, of, lambda: {})
        found = await gatherer.gather(Question(text=QUESTION, root=project, pipeline=wanted), lambda words: None)
        assert any(one.source == "common" for one in found.found) is has_all
