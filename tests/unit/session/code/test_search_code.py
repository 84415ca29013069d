"""Searching a real folder: with an index, a partial one, none; unsaved buffers; correct lines (R-227 … R-238)."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import time
import weakref
from pathlib import Path

import pytest

from codecompanion.model.found_code import FoundCode, SearchOutcome, SearchTier
from codecompanion.retrieval.search.fusion import HybridOptions
from codecompanion.session.code.indexing import build
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_code import evidence_of, look_up_code, search_code
from codecompanion.session.code.search_options import NearestChunks, SearchOptions
from codecompanion.session.code.text_hits import MAX_FILES
from codecompanion.store.code_index import word_search

FILES = {
    "shop/basket.py": (
        '"""The basket."""\n\n\nclass Basket:\n    """Holds what a customer buys."""\n\n'
        "    def add_item(self, item):\n        self.items.append(item)\n\n"
        "    def total_price(self):\n        return sum(item.price for item in self.items)\n"
    ),
    "shop/checkout.py": (
        "from shop.basket import Basket\n\n\ndef pay(basket: Basket, card):\n"
        '    """Charge the credit card."""\n    return card.charge(basket.total_price())\n'
    ),
    "shop/mail.py": 'def send_receipt(address):\n    """Mail a receipt to the customer."""\n    print(address)\n',
    "tests/test_basket.py": "from shop.basket import Basket\n\n\ndef test_total_price():\n    assert Basket()\n",
    "README.md": "# Shop\n\nA small shop.\n",
    ".env": "CARD_KEY=secret credit card\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write(folder, FILES)
    return folder


async def indexed(root: Path, tmp_path: Path) -> ProjectIndex:
    index = ProjectIndex(root, tmp_path / "cache")
    build(index.root, index.path, index.choice, now_ns=time.time_ns)
    return index


def paths(outcome: SearchOutcome) -> list[str]:
    return [result.path for result in outcome.results]


def check_lines(root: Path, results: tuple[FoundCode, ...]) -> None:
    for result in results:
        lines = (root / result.path).read_text(encoding="utf-8").split("\n")
        assert result.text == "\n".join(lines[result.start - 1 : result.end]), result


async def test_the_code_of_the_question_comes_first_with_its_lines(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "how is the credit card charged?")
    assert paths(outcome)[0] == "shop/checkout.py"
    assert (outcome.tier, outcome.is_partial) == ("fts", False)
    assert outcome.results[0].symbol == "pay"
    assert len(set(paths(outcome))) == len(outcome.results)
    assert ".env" not in paths(outcome)
    check_lines(root, outcome.results)
    await index.close()


async def test_a_named_definition_comes_before_its_uses(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "what does `total_price` do")
    assert outcome.results[0].path == "shop/basket.py"
    assert "def total_price" in outcome.results[0].text
    await index.close()


async def test_without_an_index_the_text_of_files_is_searched(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is usable, and marked as partial."""
    index = ProjectIndex(root, tmp_path / "cache")

    async def no_worker(**_: object) -> None:
        return None

    monkeypatch.setattr(index, "build", no_worker)
    outcome = await search_code(index, "how is the credit card charged?")
    assert paths(outcome)[0] == "shop/checkout.py"
    assert outcome.is_partial
    assert (outcome.tier, outcome.results[0].method) == ("terms", "terms")
    assert any("not indexed yet" in why for why in outcome.not_used)
    check_lines(root, outcome.results)
    await index.close()


async def test_without_an_index_a_whole_word_comes_before_a_prefix(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question about a project is answered from its text, even if more files match than are read."""
    for number in range(MAX_FILES + 60):
        name = f"a{number:03}/load_{number}.py"
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"def load_page_{number}(page):\n    return page\n")
    index = ProjectIndex(root, tmp_path / "cache")

    async def no_worker(*, is_rebuild: bool = False) -> None:
        """Index nothing."""

    monkeypatch.setattr(index, "build", no_worker)
    for number in (4, 44, MAX_FILES + 44):
        outcome = await search_code(index, f"where is `load_page_{number}` called")
        assert outcome.results[0].path == f"a{number:03}/load_{number}.py"
    await index.close()


async def test_a_merged_answer_is_named_after_the_best_tier_involved(root: Path, tmp_path: Path) -> None:
    """R-238: the name is that of one of the document's four tiers."""
    index = await indexed(root, tmp_path)

    class Vectors:
        async def nearest(self, _index: ProjectIndex, _question: str) -> NearestChunks:
            return lambda _limit: {1: 0.9, 2: 0.1}

    outcome = await search_code(index, "how is the credit card charged?", vectors=Vectors())
    assert outcome.tier == "hybrid"
    assert {one.method for one in outcome.results} == {"hybrid"}
    await index.close()


async def test_unsaved_text_of_a_buffer_is_found(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    text = "\n\n\ndef refund(voucher):\n    return voucher.value\n"
    outcome = await search_code(index, "refund of a voucher", unsaved={"shop/mail.py": text})
    assert outcome.results[0].path == "shop/mail.py"
    assert "def refund" in outcome.results[0].text
    after = await search_code(index, "refund of a voucher", unsaved={})
    assert all("def refund" not in result.text for result in after.results)
    await index.close()


async def test_the_next_question_sees_a_saved_change_and_a_deletion(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    write(root, {"shop/gift.py": "def wrap_gift(paper):\n    return paper\n"})
    (root / "shop/mail.py").unlink()
    assert paths(await search_code(index, "wrap a gift in paper"))[0] == "shop/gift.py"
    assert "shop/mail.py" not in paths(await search_code(index, "mail a receipt to the customer"))
    await index.close()


async def test_a_new_word_is_found_once_a_file_contains_it(root: Path, tmp_path: Path) -> None:
    """The number of chunks with a word is cached between questions, but not beyond a change."""
    index = await indexed(root, tmp_path)
    assert "shop/discount.py" not in paths(await search_code(index, "how are vouchers redeemed?"))
    write(root, {"shop/discount.py": "def apply(code):\n    return redeemed(vouchers, code)\n"})
    outcome = await search_code(index, "how are vouchers redeemed?")
    assert paths(outcome)[0] == "shop/discount.py"
    assert outcome.tier == "fts"
    await index.close()


async def test_a_search_can_be_limited_to_a_folder(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "total price of the basket", SearchOptions(below="tests", with_common=False))
    assert paths(outcome) == ["tests/test_basket.py"]
    await index.close()


@pytest.mark.parametrize(
    ("tier", "query", "answers"),
    [
        ("fts", "credit card", "fts"),
        ("hybrid", "credit card", "fts"),
        ("fts", "credit zebra", "terms"),
        ("vector", "credit zebra", "terms"),
        ("terms", "credit card", "terms"),
    ],
)
async def test_the_documents_tiers_fall_back(
    root: Path, tmp_path: Path, tier: SearchTier, query: str, answers: str
) -> None:
    """R-227: the next tier answers after a failure or an empty result."""
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, query, SearchOptions(tier=tier))
    assert outcome.tier == answers
    assert outcome.results[0].path == "shop/checkout.py"
    assert outcome.results[0].method == answers
    assert bool(outcome.not_used) == (tier != answers)
    await index.close()


async def test_a_word_that_names_a_file_or_definition_is_a_search_term(root: Path, tmp_path: Path) -> None:
    """`explain` occurs in many questions and matters only if a few files or definitions have that name."""
    write(root, {"shop/explain.py": "PLAN = 7\n", "shop/plan.py": "def describe():\n    return 7\n"})
    write(root, {f"shop/part{n}.py": "def show():\n    return 7\n" for n in range(3)})
    index = await indexed(root, tmp_path)
    for word, path in (("explain", "shop/explain.py"), ("describe", "shop/plan.py")):
        assert path in paths(await search_code(index, f"{word} the total price"))
    assert "shop/part0.py" not in paths(await search_code(index, "show the total price"))
    await index.close()


async def test_distinct_terms_are_counted(root: Path, tmp_path: Path) -> None:
    """R-234, R-235: the score is the number of distinct terms contained, most first, five files at most."""
    write(root, {"a.py": "the the the\n", "b.py": "The API\n", "c.py": "the API has API_KEYS", "d.py": "nothing\n"})
    write(root, {f"e{place}.py": "api\n" for place in range(5)})
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "the API, api_keys of it", SearchOptions(tier="terms", with_common=False))
    assert [(one.path, one.score) for one in outcome.results[:2]] == [("c.py", 3.0), ("b.py", 2.0)]
    assert [one.score for one in outcome.results[2:]] == [1.0, 1.0, 1.0]
    assert [(one.start, one.end, one.text) for one in outcome.results[:2]] == [
        (1, 1, "the API has API_KEYS"),
        (1, 1, "The API"),
    ]
    await index.close()


async def test_files_late_in_the_alphabet_are_counted(root: Path, tmp_path: Path) -> None:
    """R-235: files are counted even if more files contain a term than are read."""
    write(root, {f"a{place:03}.py": "zebra = 1\n" for place in range(MAX_FILES + 20)})
    write(root, {"z.py": "zebra = giraffe + okapi\n"})
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "zebra giraffe okapi", SearchOptions(tier="terms", with_common=False))
    assert (outcome.results[0].path, outcome.results[0].score) == ("z.py", 3.0)
    await index.close()


async def test_broad_questions_get_the_common_files(root: Path, tmp_path: Path) -> None:
    """R-236."""
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "what is the architecture of this", SearchOptions(tier="fts"))
    assert [(one.path, one.score) for one in outcome.results if one.method.endswith("+common")] == [("README.md", 0.0)]
    await index.close()


async def test_unknown_words_find_only_the_common_files(root: Path, tmp_path: Path) -> None:
    """R-236: a search with zero results returns the common files; a recently changed file is not a result."""
    commit(root, "shop/mail.py", "mail")
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "zygote quokka")
    assert [(one.path, one.method, one.score) for one in outcome.results] == [("README.md", "fts+common", 0.0)]
    assert "search: nothing found" in outcome.not_used
    with_active = await search_code(index, "zygote quokka", SearchOptions(in_play=("shop/checkout.py",)))
    assert "shop/basket.py" in paths(with_active)
    await index.close()


async def test_questions_without_a_word_find_only_the_common_files(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    for query in ("", "?!", "\x00", "the"):
        outcome = await search_code(index, query)
        assert {one.method for one in outcome.results} <= {"terms+common", "fts+common", "fts"}
    await index.close()


def commit(root: Path, path: str, subject: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", path), (*who, "commit", "-qm", subject)):
        subprocess.run(["git", *arguments], cwd=root, check=True)


async def test_commit_messages_count_for_their_files(root: Path, tmp_path: Path) -> None:
    """The words of a commit message are indexed with its files."""
    commit(root, "shop/mail.py", "Notify the warehouse by courier")
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "notify the warehouse")
    assert paths(outcome)[0] == "shop/mail.py"
    assert {"subject", "commits"} <= set(dict(outcome.results[0].signals))
    await index.close()


async def test_definitions_uses_and_lines_are_looked_up(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    (defined,) = (await look_up_code(index, "Basket.total_price", "definition", "", 1)).results
    assert (defined.path, defined.start, defined.end, defined.symbol) == (
        "shop/basket.py",
        10,
        11,
        "Basket.total_price",
    )
    uses = (await look_up_code(index, "total_price", "reference", "", 10)).results
    assert [(one.path, one.start) for one in uses] == [("shop/checkout.py", 6)]
    assert uses[0].symbol == "pay"
    lines = (await look_up_code(index, "import Basket", "text", "", 10)).results
    assert [(one.path, one.start) for one in lines] == [("shop/checkout.py", 1), ("tests/test_basket.py", 1)]
    below = (await look_up_code(index, "import Basket", "text", "tests", 10)).results
    assert [one.path for one in below] == ["tests/test_basket.py"]
    check_lines(root, (defined, *uses, *lines))
    await index.close()


async def test_an_undefined_name_is_searched_as_a_question(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    outcome = await look_up_code(index, "totalPrice", "definition", "", 3)
    assert outcome.results[0].path == "shop/basket.py"
    await index.close()


async def test_an_index_damaged_during_a_search_is_skipped(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await indexed(root, tmp_path)
    await search_code(index, "warm up")

    def damaged(*_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(word_search, "find_chunks", damaged)
    outcome = await search_code(index, "how is the credit card charged?")
    assert paths(outcome)[0] == "shop/checkout.py"
    assert any("malformed" in why for why in outcome.not_used)
    check_lines(root, outcome.results)
    await index.close()


async def test_a_searcher_lives_as_long_as_its_index(root: Path, tmp_path: Path) -> None:
    index = await indexed(root, tmp_path)
    await search_code(index, "credit card")
    await index.close()
    gone = weakref.ref(index)
    del index
    gc.collect()
    assert gone() is None


async def test_scores_decay_with_the_age_of_a_chunk(root: Path, tmp_path: Path) -> None:
    """R-233: a score halves after thirty days; the decay is off by default."""
    for path in filter(Path.is_file, root.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # one that was just written is indexed once more
    index = await indexed(root, tmp_path)
    now = await search_code(index, "credit card", SearchOptions(tier="fts"))
    month = int(time.time()) - 30 * 86_400
    connection = sqlite3.connect(index.path)
    connection.execute("UPDATE files SET indexed_at = ?", (month,))
    connection.commit()
    connection.close()
    plain = await search_code(index, "credit card", SearchOptions(tier="fts"))
    decayed = await search_code(index, "credit card", SearchOptions(tier="fts", hybrid=HybridOptions(decay=True)))
    assert plain.results[0].score == pytest.approx(now.results[0].score)
    assert decayed.results[0].score == pytest.approx(now.results[0].score / 2, rel=1e-3)
    await index.close()


async def test_diversity_compares_the_texts(root: Path, tmp_path: Path) -> None:
    """R-233: of three files on one topic two are identical; the different one comes second."""
    same = "def voucher_total(voucher):\n    return voucher.value + voucher.fee + voucher.tax\n"
    write(root, {"a/one.py": same, "a/two.py": same, "b/other.py": "# voucher rules\nLIMIT = 9\nNAMES = []\n"})
    index = await indexed(root, tmp_path)
    asked = {diverse: HybridOptions(mmr=diverse, mmr_lambda=0.3) for diverse in (False, True)}
    order = {
        diverse: paths(await search_code(index, "voucher", SearchOptions(tier="fts", hybrid=hybrid)))
        for diverse, hybrid in asked.items()
    }
    assert order[False][2] == "b/other.py"
    assert order[True][1] == "b/other.py"
    await index.close()


async def test_the_index_provides_evidence_for_a_question(root: Path, tmp_path: Path) -> None:
    """R-207."""
    index = await indexed(root, tmp_path)
    found = await evidence_of(index, "What does total price of a basket in basket.py add up?")
    assert found is not None
    assert found.has_file
    assert found.name == root.name
    assert found.with_word["basket"] > found.with_word["price"] > 0
    assert found.with_pair["total price"] > 0
    assert found.with_word["basket"] >= found.with_name["basket"] > 0
    assert not found.has_definition
    named = await evidence_of(index, "What does total_price return?")
    assert named is not None
    assert named.has_definition
    other = await evidence_of(index, "How do volcanoes erupt?")
    assert other is not None
    assert not other.has_file
    assert not any((*other.with_word.values(), *other.with_name.values()))
    await index.close()


async def test_a_folder_without_an_index_has_no_evidence(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-207: the question's words decide then."""
    index = ProjectIndex(root, tmp_path / "nothing")

    async def no_worker(**_: object) -> None:
        return None

    monkeypatch.setattr(index, "build", no_worker)
    assert await evidence_of(index, "total price") is None
    await index.close()


def committed(root: Path, subject: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for arguments in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", subject)):
        subprocess.run(("git", "-C", str(root), *arguments), check=True)


async def test_a_function_without_the_words_is_found_through_a_similar_commit(root: Path, tmp_path: Path) -> None:
    first = "def round_price(value):\n    return value\n\n\n"
    bodies = [f"def step_{n}(value):\n    return value + {n}\n\n\n" for n in range(4)]
    write(root, {"shop/prices.py": first + "".join(bodies)})
    committed(root, "begin")
    bodies[2] = bodies[2].replace("+ 2", "* 2")
    write(root, {"shop/prices.py": first + "".join(bodies)})
    committed(root, "round prices to cents")
    index = await indexed(root, tmp_path)
    outcome = await search_code(index, "why are prices not rounded to cents", SearchOptions(per_file=20))
    symbols = [one.symbol for one in outcome.results if one.path == "shop/prices.py"]
    assert symbols.index("step_2") < min(symbols.index(f"step_{n}") for n in (0, 1, 3))
    await index.close()
