"""Term counting, the cascade, project files for broad questions, and the form of results (R-227, R-234 … R-238)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from codecompanion.model.found_code import FoundCode, SearchTier
from codecompanion.retrieval.search.cascade import TierUnavailable, run_cascade, tiers_from
from codecompanion.retrieval.search.common_files import CUT, common_files, cut_common, is_broad
from codecompanion.retrieval.search.fusion import Candidate
from codecompanion.retrieval.search.results import one_per_file
from codecompanion.retrieval.search.term_counting import counted_terms

CHUNK = Candidate(1, "a.py", 1, 2, 0.5)


def test_terms_are_the_distinct_longer_words() -> None:
    """R-235."""
    assert counted_terms("How does the API do the I/O of api_keys?") == ("how", "does", "the", "api", "api_keys")


@pytest.mark.parametrize(
    ("from_tier", "failing", "empty", "answers"),
    [
        ("hybrid", (), (), "hybrid"),
        ("hybrid", ("hybrid",), (), "fts"),
        ("hybrid", (), ("hybrid",), "fts"),
        ("hybrid", ("hybrid",), ("fts",), "vector"),
        ("hybrid", ("hybrid", "vector"), ("fts",), "terms"),
        ("fts", ("fts",), (), "vector"),
        ("terms", (), (), "terms"),
    ],
)
def test_the_next_tier_answers_after_a_failure_or_an_empty_result(
    from_tier: SearchTier, failing: tuple[str, ...], empty: tuple[str, ...], answers: str
) -> None:
    """R-227."""

    def search(tier: SearchTier) -> Sequence[Candidate]:
        if tier in failing:
            raise TierUnavailable("no embeddings are configured")
        return () if tier in empty else (CHUNK,)

    answered = run_cascade(tiers_from(from_tier), search)
    assert answered.tier == answers
    assert answered.found == (CHUNK,)
    assert len(answered.not_used) == len(failing) + len(empty)
    assert all("no embeddings are configured" in said or "nothing found" in said for said in answered.not_used)


def test_any_exception_leads_to_the_next_tier() -> None:
    """R-227: any exception does, and so does an empty result."""

    def search(tier: SearchTier) -> Sequence[Candidate]:
        raise ZeroDivisionError if tier == "hybrid" else OSError("disk gone")

    answered = run_cascade(tiers_from("auto"), search)
    assert (answered.found, answered.tier) == ((), "terms")
    assert answered.not_used[0] == "hybrid: ZeroDivisionError"
    assert answered.not_used[1] == "keyword search: disk gone"


@pytest.mark.parametrize(
    ("question", "broad"),
    [
        ("Give me an overview", True),
        ("what STACK is this", True),
        ("How does the app work?", True),
        ("how is the project built", True),
        ("where is parse_url", False),
        ("", False),
    ],
)
def test_broad_questions_are_recognised(question: str, broad: bool) -> None:
    """R-236."""
    assert is_broad(question) is broad


def test_common_files_are_in_the_documents_order_followed_by_entry_points() -> None:
    """R-236: there are at most three entry points; missing ones are skipped."""
    paths = ["plugin/b.lua", "plugin/a.lua", "lua/oil/init.lua", "lua/oil/view/init.lua", "main.py", "src/main.rs"]
    assert common_files(["go.mod", "docs/README.md", "README.md", "x/README.md", *paths]) == (
        *("README.md", "docs/README.md", "go.mod"),
        *("main.py", "src/main.rs", "lua/oil/init.lua"),
    )
    assert common_files([]) == ()


def test_a_long_common_file_is_truncated_with_a_mark() -> None:
    """R-236."""
    assert cut_common("x" * 5000) == "x" * 5000
    assert cut_common("x" * 5001) == "x" * 5000 + CUT


def result(path: str, start: int = 1, score: float = 0.5, method: str = "fts") -> FoundCode:
    return FoundCode(path, start, start + 1, score, method, text=f"text of {path}")


def test_one_result_per_file_and_at_most_fifteen() -> None:
    """R-237: the first result of a file counts."""
    results = [result("a", 1), result("b"), result("a", 9), *(result(f"{i}") for i in range(30))]
    kept = one_per_file(results)
    assert len(kept) == 15
    assert kept[:3] == (result("a", 1), result("b"), result("0"))
