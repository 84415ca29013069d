"""Edge cases of gathering that no other test covers (R-221, R-226, R-236, R-264, R-267)."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.errors import StoreUnavailable
from codecompanion.model.found_code import SearchOutcome
from codecompanion.session.codebase.gatherer import Question
from codecompanion.session.gather import gather_code as gathering
from codecompanion.session.gather.chat_gatherer import ProjectGatherer
from tests.unit.session.gather import test_gather_code
from tests.unit.session.gather.test_gather_code import FOUND, QUESTION, FakeSearch, ask, places, resources

project = test_gather_code.project
COMMON = "README.md package.json CONTRIBUTING.md docs/README.md docs/architecture.md pyproject.toml Cargo.toml go.mod"


class PartialSearch(FakeSearch):
    """Finds many results in an incomplete index."""

    async def evidence(self, question, unsaved):
        return None

    async def __call__(self, question, options, unsaved):
        found = await super().__call__(question, options, unsaved)
        return SearchOutcome(found.results, found.tier, is_partial=True)


@pytest.mark.parametrize(("kind", "scans"), [(FakeSearch, 0), (PartialSearch, 1)])
async def test_files_missing_from_an_index_are_searched_as_text(project, monkeypatch, kind, scans):
    """R-221: they are searched no matter how many results the index returned."""
    searched = []
    monkeypatch.setattr(gathering, "files_with_terms", lambda code, terms, check: searched.append(terms) or [])
    many = [msgspec.structs.replace(FOUND, path=f"src/f{n}.py") for n in range(12)]
    await ask(project, by=resources(kind(*many)))
    assert len(searched) == scans


async def test_at_most_six_files_describe_a_project(project):
    """R-236: they follow the search results, and none are added beside hits for the question's own words."""
    for name in COMMON.split():
        (project / name).write_text(f"# {name}\n")
    about_all = await ask(project, "explain the architecture of this project")
    common = [one for one in about_all.found if one.source == "common"]
    assert {one.path for one in common} == {*COMMON.split()[:6]}
    assert {one.score for one in common} == {0.1}
    narrow = await ask(project)
    assert [one for one in narrow.found if one.source == "common"] == []
    assert places(narrow)[0][0] == "src/parser.py"


async def test_text_that_looks_like_a_file_list_is_text(project):
    """R-226: snippets are passed on as values; rendered text is never parsed again."""
    text = '"""parse_config reads\n\n## File: src/other.py\n```python\ndef made_up():\n    pass\n```\n"""\n'
    (project / "src/notes.py").write_text(text)
    found = await ask(project, files=("src/notes.py",))
    of_notes = [one for one in found.found if one.path == "src/notes.py"]
    assert of_notes[0].text == text
    assert all("made_up" not in one.text for one in found.found if one.path != "src/notes.py")
    assert all(one.name != "made_up" for one in found.found)
    assert "made_up" in found.text


async def test_a_changed_setting_applies_from_the_next_question_without_an_adapter(project):
    """R-264, R-267: without `utility`, no adapter is asked for."""

    async def no_index(root):
        raise StoreUnavailable("no index here")

    def no_adapters():
        raise AssertionError("an adapter was asked for")

    now = [resources().settings]
    gatherer = ProjectGatherer(lambda: now[0], no_adapters, no_index, lambda: {})
    question = Question(text=QUESTION, root=project, model="gpt-4o", is_asked=True)
    before = await gatherer.gather(question, lambda words: None)
    now[0] = msgspec.structs.replace(now[0], budgets={"gpt-4o": 10})
    after = await gatherer.gather(question, lambda words: None)
    assert (before.selection.budget_tokens, after.selection.budget_tokens) == (20_000, 10)
    assert before.selection.total_tokens > 10 >= after.selection.total_tokens
