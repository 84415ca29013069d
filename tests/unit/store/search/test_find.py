"""Search over all messages: a phrase, a question, names, days; one ranking for all (R-516; design, Store)."""

from __future__ import annotations

import datetime
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.history import ChatForked, MessageAdded
from codecompanion.model.messages import ImagePart, Message, TextPart, ToolCall
from codecompanion.store.log.migrations import MIGRATIONS, migrate
from codecompanion.store.opening import open_memory_store
from codecompanion.store.search import find as search
from codecompanion.store.search import inner_index
from codecompanion.store.store import Store
from tests.unit.store.conftest import CREATED, Desk, said

DAY = 86_400.0


def found(store: Store, query: str, chat_id: str | None = "c") -> list[str]:
    """Return the ids of the results, best first."""
    return [hit.message_id for hit in store.search(query, chat_id)]


def talk(store: Store, *texts: str) -> None:
    """Append turns as messages m0, m1 and so on."""
    roles = ("user", "assistant")
    store.append("c", [said(text, roles[n % 2], n) for n, text in enumerate(texts)]).result()  # type: ignore[arg-type]


def filler(count: int) -> list[str]:
    """Return messages about something else, all different."""
    return [f"Nothing of note happened at stage {number} of the walk." for number in range(count)]


def test_any_word_is_searched_all_words_rank_first_and_the_last_may_be_a_prefix(store: Store) -> None:
    """Best hit first, with title, place and a marked snippet; the text after a restart is found as well."""
    store.append("c", [CREATED, said("The parser fails on empty_tables in Lua", number=1)]).result()
    store.append("c", [said("The parser works", "assistant", number=2), said("tables are fine", number=3)]).result()
    hit = store.search("parser tab")[0]
    assert (hit.chat_id, hit.seq, hit.message_id, hit.role) == ("c", 2, "m1", "user")
    assert "«parser»" in hit.snippet
    assert "«tables»" in hit.snippet
    assert set(found(store, "parser")) == set(found(store, "parser nothing")) == {"m1", "m2"}
    assert store.search("nothing") == []
    assert store.search("parser", chat_id="other") == []
    assert len(store.search("parser", limit=1)) == 1
    assert [hit.message_id for hit in store.search("parser", "c", seqs={3, 4})] == ["m2"]


def test_a_question_finds_its_answer_among_messages_with_the_same_small_words(store: Store) -> None:
    """Common question words carry no meaning; a rare word counts more than a frequent one."""
    talk(
        store,
        *filler(30),
        "We did what we could, and it was fine where we did it.",
        "The lease on the boathouse ends in autumn.",
        *filler(30),
    )
    assert found(store, "When does the lease for the boathouse end, and what did we do?")[0] == "m31"


def test_a_verb_is_found_in_its_other_forms(store: Store) -> None:
    """No stemmer maps buy and bought together."""
    talk(store, *filler(9), "I bought a kayak.", *filler(9))
    assert found(store, "what did she buy") == ["m9"]


def test_a_reply_is_found_by_the_question_it_answers(store: Store) -> None:
    """A reply rarely repeats the words; an unrelated one with a single one of them ranks lower."""
    talk(
        store,
        *filler(12),
        "Which port does the staging gateway listen on?",
        "On 7443, since the move.",
        *filler(11),
        "The gateway drug metaphor is tired.",
        *filler(12),
    )
    assert set(found(store, "port the staging gateway listens on")[:2]) == {"m12", "m13"}


def test_adjacent_words_rank_above_separate_ones(store: Store) -> None:
    """A phrase counts more, and a quoted one most."""
    talk(store, "merge the two conflict lists", "a merge conflict arose", "conflict of the last merge", *filler(20))
    assert found(store, "merge conflict")[0] == "m1"
    assert found(store, '"conflict of the last"')[0] == "m2"


@pytest.mark.parametrize("query", ["parse table", "parse_table", "where is parseTable defined?", "ParseTable"])
def test_a_name_is_found_by_itself_and_by_its_words(store: Store, query: str) -> None:
    """Upper case and underscores separate words like spaces."""
    talk(store, "The table is laid", *filler(8), "parseTable(rows) loses the last one", "We parse nothing", *filler(8))
    assert found(store, query)[0] == "m9"


def test_a_spaced_name_is_found_by_the_name(store: Store) -> None:
    """A query for `readConfigFile` finds "read a config file"."""
    talk(store, *filler(8), "the function that should read a config file twice", *filler(8))
    assert found(store, "readConfigFile") == ["m8"]


def test_a_path_ranks_above_an_equally_named_file_elsewhere(store: Store) -> None:
    """An equally named file elsewhere ranks above the path's parts in other places."""
    talk(
        store,
        *filler(6),
        "lua/chat/render.lua is long",
        "I changed src/web/render.lua today",
        "the chat has a lua script to render",
        *filler(6),
    )
    assert found(store, "What about lua/chat/render.lua?")[:2] == ["m6", "m7"]


def test_a_tool_result_is_found_by_its_call(store: Store) -> None:
    """The path is only in the call; of two results with one call id each has its own call."""

    def call(path: str, number: int) -> list[MessageAdded]:
        asked = ToolCall("same", "read_file", f'{{"path": "{path}"}}')
        return [
            MessageAdded(message=Message(id=f"a{number}", role="assistant", tool_calls=(asked,))),
            MessageAdded(message=Message(id=f"t{number}", role="tool", tool_call_id="same", content="local x = 1")),
        ]

    store.append("c", [said("go"), *call("lua/deep/socket.lua", 1), *call("lua/deep/timer.lua", 2)]).result()
    hits = store.search("socket.lua", "c")
    assert {hit.message_id for hit in hits[:2]} == {"t1", "a1"}
    assert "«socket»" in next(hit.snippet for hit in hits if hit.message_id == "a1")


def test_text_without_spaces_is_found_by_any_part_of_it(store: Store) -> None:
    """Chinese, Japanese and Korean do not separate words in a text."""
    talk(store, "数据库连接失败了，请检查端口", "テーブルの解析が遅いです", "서울에서 만나요", "nothing here")
    assert found(store, "连接失败") == ["m0"]
    assert found(store, "解析が遅い") == ["m1"]
    assert found(store, "서울") == ["m2"]
    assert found(store, "库")[0] == "m0"
    assert "«连接失败»" in store.search("连接失败")[0].snippet


def test_a_query_of_small_words_is_a_phrase(store: Store) -> None:
    """If there is no such phrase, any of the words counts."""
    talk(store, "to be or not to be", "it is not to be or so", "be to or", *filler(3))
    assert found(store, "to be or not to be") == ["m0"]
    assert set(found(store, "not what")) == {"m0", "m1"}


def test_a_day_in_the_question_ranks_its_messages_first(desk: Desk) -> None:
    """The day may be absolute or relative to today."""
    store = desk.open()
    noon = datetime.datetime(2023, 5, 16, 12).timestamp()  # a Tuesday
    for number in range(12):
        desk.now = noon + 9 * number * DAY
        store.append("c", [said(f"The release meeting went well in room {number}", number=number)]).result()
    assert found(store, "How did the release meeting on 16 May 2023 go?")[0] == "m0"
    assert found(store, "the release meeting in July 2023 in a room")[0] in ("m6", "m7", "m8")
    desk.now = noon + 91 * DAY - 1
    assert found(store, "the release meeting in a room yesterday")[0] == "m10"


@pytest.mark.parametrize("common", [4, 10_000])
def test_very_common_words_count_only_beside_rarer_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch, common: int
) -> None:
    """It saves time in a long history and changes nothing at the top; a branch is found like its original."""
    monkeypatch.setattr(search, "COMMON", common)
    monkeypatch.setattr(search, "POOL", 5)
    rooms = ["the walk to the quarry at stage two", *(f"the quarry, seen from stage {n}" for n in range(3))]
    store.append("c", [CREATED, *(said(text, number=n) for n, text in enumerate([*rooms, *filler(40)]))]).result()
    store.fork("c", "b", 30, (), [ChatForked(from_chat="c", family="c")]).result()
    hits = store.search("walk quarry stage")
    assert [(hit.chat_id, hit.message_id) for hit in hits[:2]] == [("b", "m0"), ("c", "m0")]
    assert len(store.search("stage", limit=999)) == 44 + 29


def test_a_pasted_traceback_is_a_query_too(store: Store) -> None:
    """Names take precedence if there is no room for every word."""
    talk(store, *filler(9), "load_settings() raises KeyError", *filler(9))
    lines = " ".join(f"word{number} other{number}" for number in range(3_000))
    assert found(store, f"{lines} in load_settings")[0] == "m9"


def test_text_parts_are_found_and_system_prompt_and_rules_are_not(store: Store) -> None:
    """System prompt and rules are in every chat: finding them is useless."""
    parts = (TextPart("needle in a part"), ImagePart(path="x.png"))
    store.append(
        "c",
        [
            MessageAdded(message=Message(id="p", role="user", content=parts)),
            MessageAdded(message=Message(id="s", role="system", content="needle needleWork")),
            MessageAdded(message=Message(id="r", role="user", content="needle needleWork", tag="rules")),
        ],
    ).result()
    assert found(store, "needle") == ["p"]
    assert found(store, "work") == []


@pytest.mark.parametrize(
    "query",
    ["", " ", '"', "AND", "NEAR(", "a* OR", "text:x", "-", "*", "\0", "\udc80", "中文", "中", '""', "a/b/", "_"],
)
def test_no_query_is_a_syntax_error(store: Store, query: str) -> None:
    """The user's input is words, never FTS5 syntax."""
    store.append("c", [said("and near or text 中文 x")]).result()
    assert isinstance(store.search(query), list)


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_query_on_any_text_returns_an_answer(text: str) -> None:
    """A text finds itself if it has words."""
    store = open_memory_store()
    try:
        store.append("c", [said(text)]).result()
        assert len(store.search(text)) <= 1
    finally:
        store.close()


def test_a_failed_append_is_not_found(desk: Desk) -> None:
    """Index and log change in one transaction."""
    store = desk.open()
    store.append("c", [said("ghost"), object()]).exception()  # type: ignore[list-item]
    store.append("c", [said("real")]).result()
    assert store.search("ghost") == []
    assert [hit.seq for hit in store.search("real")] == [1]


def to_version_5(desk: Desk) -> None:
    """Make the file one of the version before inner words were indexed."""
    with sqlite3.connect(desk.path, isolation_level=None) as connection:
        connection.execute("DROP TABLE message_inner")
        connection.execute("DROP TABLE inner_missing")
        connection.execute("DROP TABLE tail_state")
        for column in ("above", "below", "figures", "framing", "framed"):
            connection.execute(f"ALTER TABLE calibration DROP COLUMN {column}")
        connection.execute("ALTER TABLE chats DROP COLUMN purpose")
        connection.execute("PRAGMA user_version = 5")
    connection.close()


def test_messages_of_an_older_version_are_indexed_while_the_store_is_used(desk: Desk) -> None:
    """Opening reads no message; words are found immediately, inner words once the index is complete."""
    store = desk.open()
    for number in range(75):
        store.append("c", [said(f"parseTable{number} says {'数据库' if number == 3 else 'no'}", number=number)])
    store.append("c", [MessageAdded(message=Message(id="x", role="user", content="damaged parseRows"))]).result()
    store.close()
    to_version_5(desk)
    with sqlite3.connect(desk.path, isolation_level=None) as connection:
        connection.execute("UPDATE events SET payload = x'00' WHERE seq = 76")
    connection.close()
    store = desk.open()
    assert found(store, "parseTable5")[0] == "m5"
    store.append("c", [said("parseNew", number=99)]).result()
    store.index_completed().result(30)
    assert found(store, "数据") == ["m3"]
    assert "m99" in found(store, "new")
    assert len(store.search("table", "c", 99)) == 75
    assert desk.reports == []


@pytest.mark.parametrize("max_bytes", [inner_index.MAX_BYTES, 1])
def test_a_partial_index_is_continued_by_the_next_process(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, max_bytes: int
) -> None:
    """A chat deleted before its turn is in no index; a large message is a separate step."""
    monkeypatch.setattr(inner_index, "MAX_BYTES", max_bytes)
    monkeypatch.setattr(inner_index, "PAUSE_S", 0.0)
    store = desk.open()
    for chat in ("kept", "gone"):
        store.append(chat, [said(f"parseTable {chat}", number=n) for n in range(30)]).result()
    store.close()
    to_version_5(desk)
    connection = sqlite3.connect(desk.path, isolation_level=None)
    migrate(connection, "x", MIGRATIONS)
    connection.execute("UPDATE inner_missing SET below = 31")
    connection.close()
    store = desk.open()
    store.delete("gone").result()
    store.index_completed().result(30)
    assert {hit.chat_id for hit in store.search("table")} == {"kept"}
    store.close()
    with sqlite3.connect(desk.path) as connection:
        connection.execute("INSERT INTO message_inner(message_inner) VALUES ('integrity-check')")
        assert connection.execute("SELECT * FROM inner_missing").fetchall() == []
    connection.close()
