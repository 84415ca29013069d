"""The joined ranking: words of a question, kinds of files, signals and their sum, places within a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.retrieval.ranking.edited_lines import EditedLines
from codecompanion.retrieval.ranking.evidence import ChunkHit, DefinitionHit, Evidence
from codecompanion.retrieval.ranking.file_kinds import FileKind, kind_of
from codecompanion.retrieval.ranking.join import RankedFile, file_signals, find_seeds, nearness_of, rank_files, scaled
from codecompanion.retrieval.ranking.like_commits import LikeCommits
from codecompanion.retrieval.ranking.page_rank import reversed_edges, spread
from codecompanion.retrieval.ranking.places import best_places
from codecompanion.retrieval.ranking.question import any_word_query, read_question, spellings
from codecompanion.retrieval.ranking.stems import stem, stems_of
from codecompanion.retrieval.ranking.tables import Weights, question_words, ranking
from codecompanion.retrieval.ranking.word_index import WordIndex, count_path_words


@pytest.mark.parametrize("words", ["parsing parser parsed parse", "connections connection", "running runs"])
def test_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


def test_stems_of_names_are_those_of_their_parts() -> None:
    assert stems_of("parseHTTPReplies") == [stem("parse"), "http", stem("replies")]


def test_a_question_is_parsed() -> None:
    question = read_question("How does `read_file` in src/reader.py call HTTPClient.send() for the users?")
    assert {"read", "file", "reader", "http", "client", "send", "users"} <= set(question.words)
    assert {"how", "does", "the"}.isdisjoint(question.words)
    assert {"read_file", "HTTPClient", "send"} <= question.code_names
    assert "users" not in question.code_names
    assert "src/reader.py" in question.paths
    assert not question.is_about_documents


def test_adjacent_words_are_pairs() -> None:
    """`parse reply` and `parseReply` are one phrase in the index; words of asking are in none."""
    assert read_question("fix the reply parser of parseReply").pairs == ("reply parser", "parser parse", "parse reply")
    assert read_question("parser").pairs == ()


def test_common_question_words_count_if_there_is_nothing_else() -> None:
    assert read_question("how to fix").words == ("fix",)
    assert read_question("").words == ()


def test_a_name_is_searched_in_every_spelling() -> None:
    assert set(spellings("totalPrice")) == {"totalPrice", "totalprice", "total_price", "TotalPrice"}
    assert set(spellings("pay")) == {"pay", "Pay"}


def test_a_question_may_be_about_documents() -> None:
    assert read_question("typo in the Readme").is_about_documents


def test_any_word_query_consists_of_quoted_words() -> None:
    assert any_word_query(("a", "b")) == '"a" OR "b"'
    assert any_word_query(()) == ""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/a.py", FileKind()),
        ("README.md", FileKind(is_document=True)),
        ("LICENSE", FileKind(is_document=True)),
        ("tests/test_a.py", FileKind(is_test=True)),
        ("pkg/server_test.go", FileKind(is_test=True)),
        ("src/app.spec.ts", FileKind(is_test=True)),
        ("examples/basic/main.go", FileKind(is_example=True)),
        ("docs/tests/a.rst", FileKind(is_document=True, is_test=True, is_example=True)),
        ("src/contest.py", FileKind()),
    ],
)
def test_files_have_a_kind(path: str, kind: FileKind) -> None:
    assert kind_of(path) == kind


def index_of(**files: str) -> WordIndex:
    index = WordIndex()
    for name, words in files.items():
        index.put(name, count_path_words((), stems_of(words)))
    return index


def test_rare_words_count_more() -> None:
    index = index_of(a="parser common", b="common", c="common", d="common")
    scores = index.score([stem("parser"), stem("common")])
    assert max(scores, key=scores.__getitem__) == "a"
    assert scores["b"] < scores["a"] / 3


def test_files_are_added_and_removed() -> None:
    index = index_of(a="one", b="two")
    index.put("a", count_path_words((), ["three"]))
    index.remove("b")
    index.remove("never there")
    assert set(index.score(["one", "two", "three"])) == {"a"}
    assert (len(index), list(index.paths()), "a" in index, "b" in index) == (1, ["a"], True, False)


WORDS = ("x", "bench", "benchmark", "config")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from(WORDS), min_size=1), st.booleans())))
def test_an_incremental_index_equals_one_of_the_remaining_files(steps: list[tuple[str, list[str], bool]]) -> None:
    changed, left = WordIndex(), dict[str, list[str]]()
    for name, words, is_put in steps:
        changed.score_prefixes(["bench"])
        if is_put:
            changed.put(name, count_path_words((), words))
            left[name] = words
        else:
            changed.remove(name)
            left.pop(name, None)
    made = WordIndex()
    for name, words in left.items():
        made.put(name, count_path_words((), words))
    assert changed.score(WORDS) == pytest.approx(made.score(WORDS))
    asked = ("bench", "benchmarks", "configuration")
    assert changed.score_prefixes(asked) == pytest.approx(made.score_prefixes(asked))


def test_weight_is_passed_along_the_edges() -> None:
    edges = {"seed": {"near": 3.0, "other": 1.0}, "near": {"far": 1.0}}
    arrived = spread({"seed": 1.0}, edges)
    assert arrived["near"] > arrived["far"] > 0
    assert arrived["near"] == pytest.approx(3 * arrived["other"])
    assert "seed" not in arrived
    assert reversed_edges(edges)["near"] == {"seed": 3.0}
    assert spread({}, edges) == {}


@given(
    st.dictionaries(st.sampled_from("abcd"), st.floats(0.1, 5), min_size=1),
    st.dictionaries(st.sampled_from("abcd"), st.dictionaries(st.sampled_from("abcd"), st.floats(0.1, 5))),
)
def test_passing_on_creates_no_weight(seeds: dict[str, float], edges: dict[str, dict[str, float]]) -> None:
    """Half is passed on in each step, so less than the original total can arrive."""
    assert sum(spread(seeds, edges).values()) <= 1.0


def hit(chunk: int, path: str, bm25: float, start: int = 1, cosine: float | None = None) -> ChunkHit:
    return ChunkHit(chunk, path, start, start + 9, bm25=bm25, cosine=cosine)


def paths_of(text: str, evidence: Evidence) -> list[str]:
    return [ranked.path for ranked in rank_files(read_question(text), evidence, ranking())]


def test_the_file_of_the_better_chunk_comes_first() -> None:
    evidence = Evidence(chunks=(hit(1, "a.py", 2), hit(2, "b.py", 5)))
    assert paths_of("parse things", evidence) == ["b.py", "a.py"]


def test_a_named_definition_comes_first() -> None:
    evidence = Evidence(
        chunks=(hit(1, "use.py", 5), hit(2, "define.py", 4.8)),
        definitions=(DefinitionHit("define.py", "read_file", 3, 9, "read_file"),),
    )
    assert paths_of("where is read_file", evidence)[0] == "define.py"


def test_a_document_ranks_below_source_unless_asked_for_or_much_better() -> None:
    same = Evidence(chunks=(hit(1, "guide.md", 5), hit(2, "a.py", 4)))
    assert paths_of("parse things", same) == ["a.py", "guide.md"]
    better = Evidence(chunks=(hit(1, "guide.md", 50), hit(2, "a.py", 4)), paths={"guide.md": 3.0})
    assert paths_of("the guide", better)[0] == "guide.md"


def test_a_file_without_the_words_is_found_by_its_users() -> None:
    evidence = Evidence(chunks=(hit(1, "a.py", 5),), edges={"a.py": {"helper.py": 2.0}})
    assert paths_of("parse things", evidence) == ["a.py", "helper.py"]


def test_the_file_in_play_wins_among_equals() -> None:
    evidence = Evidence(chunks=(hit(1, "a.py", 5), hit(2, "b.py", 5)), in_play=("b.py",))
    assert paths_of("parse things", evidence) == ["b.py", "a.py"]
    assert "b.py" in find_seeds(read_question("parse"), evidence, ranking())


def test_vectors_are_counted_if_there_are_any() -> None:
    without = Evidence(chunks=(hit(1, "a.py", 5), hit(2, "b.py", 4.9)))
    with_them = Evidence(chunks=(hit(1, "a.py", 5, cosine=0.1), hit(2, "b.py", 4.9, cosine=0.8)))
    assert paths_of("parse things", without)[0] == "a.py"
    assert paths_of("parse things", with_them)[0] == "b.py"
    assert not file_signals(read_question("parse"), without, ranking())["vector"]


def test_words_and_vectors_of_one_chunk_count_more_than_those_of_two() -> None:
    """Both files have the best BM25 and the best cosine; in `one.py` it is one chunk that has both."""
    one = (hit(1, "one.py", 5, cosine=0.9), hit(2, "one.py", 0, cosine=0.1))
    two = (hit(3, "two.py", 5, cosine=0.1), hit(4, "two.py", 0, cosine=0.9))
    evidence = Evidence(chunks=(*two, *one))
    signals = file_signals(read_question("parse"), evidence, ranking())
    assert signals["vector"] == {"one.py": 1.0, "two.py": 1.0}
    assert signals["chunk"]["one.py"] == 1.0 > signals["chunk"]["two.py"]
    assert paths_of("parse", evidence) == ["one.py", "two.py"]


def test_a_chunk_found_only_by_vectors_counts_for_its_file() -> None:
    evidence = Evidence(chunks=(hit(1, "a.py", 0, cosine=0.9), hit(2, "b.py", 0, cosine=0.2)))
    assert paths_of("parse things", evidence) == ["a.py"]
    assert nearness_of(evidence.chunks) == {1: 1.0, 2: 0.0}
    assert nearness_of((hit(1, "a.py", 1, cosine=0.3), hit(2, "b.py", 1))) == {1: 1.0}


def test_words_with_a_common_beginning_are_abbreviations() -> None:
    index = index_of(benchmarks="benchmarks/router", conf="docs/conf", other="lib/bend", test="test/bench")
    scores = index.score_prefixes(stems_of("bench: read the configuration"))
    assert set(scores) == {"benchmarks", "conf"}
    assert index.score_prefixes(stems_of("ben con of")) == {}, "three letters begin like others by chance"
    index.remove("benchmarks")
    index.put("more", {"benchmark": 1.0})
    assert set(index.score_prefixes(["bench"])) == {"more"}
    evidence = Evidence(chunks=(hit(1, "a.py", 5), hit(2, "b.py", 5)), prefixes={"b.py": 2.0})
    assert paths_of("bench", evidence) == ["b.py", "a.py"]


def test_commits_similar_to_the_question_name_their_files() -> None:
    commits = LikeCommits(
        [
            (stems_of("Parse headers of a reply"), ("reply.py", "tests/test_reply.py")),
            (stems_of("Parse headers of everything"), ("reply.py", *(f"part{n}.py" for n in range(8)))),
            (stems_of("Speed up the build"), ("build.py",)),
            (stems_of("Parse headers"), ()),
        ]
    )
    scores = commits.score(stems_of("reply headers are parsed twice"))
    assert max(scores, key=lambda path: scores[path]) == "reply.py"
    assert scores["tests/test_reply.py"] > scores["part0.py"] > 0
    assert "build.py" not in scores
    assert commits.score(stems_of("unheard of")) == {}
    assert LikeCommits().score(["reply"]) == {}


def test_only_the_most_similar_commits_count() -> None:
    """Every second commit may share a word by chance, so only twenty count.

    Of equally similar commits, the newer ones.
    """
    commits = LikeCommits([(["cache"], (f"file{number}.py",)) for number in range(50)])
    assert set(commits.score(["cache"])) == {f"file{number}.py" for number in range(20)}


def test_the_parts_of_a_score_are_reported() -> None:
    """R-268: they show why a file was found."""
    (ranked,) = rank_files(read_question("parse"), Evidence(chunks=(hit(1, "a.py", 5),)), ranking())
    assert dict(ranked.signals)["chunk"] == ranking().weights.chunk


@given(
    st.lists(st.tuples(st.sampled_from(["a.py", "b.md", "tests/c.py"]), st.floats(0, 50)), max_size=20),
    st.dictionaries(st.sampled_from(["a.py", "b.md", "d.lua"]), st.floats(0, 50)),
    st.dictionaries(st.sampled_from(["a.py", "d.lua"]), st.floats(0, 1)),
)
def test_scores_are_sorted_and_between_zero_and_one(
    chunks: list[tuple[str, float]], paths: dict[str, float], recency: dict[str, float]
) -> None:
    hits = tuple(hit(number, path, score) for number, (path, score) in enumerate(chunks))
    evidence = Evidence(chunks=hits, paths=paths, recency=recency)
    ranked = rank_files(read_question("parse the docs"), evidence, ranking())
    scores = [one.score for one in ranked]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert len({one.path for one in ranked}) == len(ranked)
    assert rank_files(read_question("parse the docs"), evidence, ranking(), 2) == ranked[:2]


def test_without_evidence_there_is_no_result() -> None:
    assert rank_files(read_question("parse"), Evidence(), ranking()) == ()
    assert scaled({"a": 0.0}) == {}


def test_places_of_a_file_are_sorted_by_score() -> None:
    chunks = (hit(1, "a.py", 2, start=1), hit(2, "a.py", 6, start=20), hit(3, "a.py", 4, start=40))
    files = rank_files(read_question("parse"), Evidence(chunks=chunks), ranking())
    one = best_places(read_question("parse"), files, chunks, (), 1)
    assert [(place.start, place.end) for place in one] == [(20, 29)]
    two = best_places(read_question("parse"), files, chunks, (), 2)
    assert [place.start for place in two] == [20, 40]
    assert two[1].score < two[0].score == files[0].score


def test_the_place_of_a_named_definition_comes_first_in_its_file() -> None:
    chunks = (hit(1, "a.py", 6, start=1), hit(2, "a.py", 5, start=20))
    named = (DefinitionHit("a.py", "read_file", 20, 29, "read_file"),)
    question = read_question("read_file")
    files = rank_files(question, Evidence(chunks=chunks, definitions=named), ranking())
    assert best_places(question, files, chunks, named, 1)[0].start == 20


def test_lines_changed_by_a_similar_commit_precede_others_with_the_same_words() -> None:
    chunks = (hit(1, "a.py", 5, start=1), hit(2, "a.py", 5, start=20), hit(3, "a.py", 5, start=40))
    edits = EditedLines([(["unlike"], {"a.py": [(43, 44)], "b.py": [(1, 9)]}), (["pars"], {"a.py": [(29, 30)]})])
    question = read_question("parse")
    files = rank_files(question, Evidence(chunks=chunks), ranking())
    like = edits.like(question.stems)
    assert [one.start for one in best_places(question, files, chunks, (), 3, like)] == [20, 40, 1]
    assert [one.start for one in best_places(question, files, chunks, (), 3)] == [1, 20, 40]
    newest, older = like["a.py"]
    assert (newest.recency, newest.likeness) == (1.0, 0.0)
    assert older.recency < 1
    assert older.likeness > 0


def test_places_in_documents_come_later_unless_asked_for() -> None:
    chunks = (hit(1, "guide.md", 9), hit(2, "a.py", 5))
    for text, first in (("parse", "a.py"), ("parse documentation", "guide.md")):
        files = [RankedFile("guide.md", 0.9), RankedFile("a.py", 0.9)]
        assert best_places(read_question(text), files, chunks, (), 2)[0].path == first
        assert best_places(read_question(text), files, chunks, (), 1)[0].path == "guide.md"


def places_of(text: str, chunks: tuple[ChunkHit, ...], *definitions: DefinitionHit) -> list[str]:
    question = read_question(text)
    files = rank_files(question, Evidence(chunks=chunks, definitions=definitions), ranking())
    return [place.symbol for place in best_places(question, files, chunks, definitions, per_file=1)]


def test_the_requested_definition_precedes_text_about_defining() -> None:
    chunks = (
        ChunkHit(1, "port.py", 1, 20, "normalize_port", "function", bm25=3.0),
        ChunkHit(2, "main.py", 1, 20, "imports", "block", bm25=2.5),
    )
    named = DefinitionHit("main.py", "handle_help", 301, 310, "handle_help")
    assert places_of("where is handle_help defined", chunks, named)[0] == "handle_help"
    assert "defined" not in read_question("where is handle_help defined").words


def test_a_capitalised_class_precedes_a_lower_case_property() -> None:
    chunks = (
        ChunkHit(1, "client.py", 1, 3, "Client.cookies", "method", bm25=3.0),
        ChunkHit(2, "models.py", 9, 12, "Cookies", "class", bm25=2.0),
    )
    found = places_of(
        "where is Cookies created",
        chunks,
        DefinitionHit("client.py", "cookies", 1, 3, "Cookies"),
        DefinitionHit("models.py", "Cookies", 9, 99, "Cookies"),
    )
    assert found == ["Cookies", "Client.cookies"]


def test_a_dotted_name_means_the_method_not_its_class() -> None:
    chunks = (
        ChunkHit(1, "client.py", 1, 40, "Client", "class", bm25=5.0),
        ChunkHit(2, "client.py", 50, 60, "Client.send", "method", bm25=2.0),
    )
    found = places_of(
        "what does Client.send do",
        chunks,
        DefinitionHit("client.py", "Client", 1, 90, "Client"),
        DefinitionHit("client.py", "send", 50, 60, "send"),
    )
    assert found == ["Client.send"]


def test_the_tables_are_complete() -> None:
    """Every weight is in the file; words are in lower case, as they are when compared."""
    assert set(Weights.__struct_fields__) >= {"chunk", "path", "vector"}
    assert ranking().weights.chunk == 1
    words = question_words()
    assert all(word == word.lower() for group in words.values() for word in group)
