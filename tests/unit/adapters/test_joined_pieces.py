"""The items of a request in chunks: bytes equal to a single join, and full chunks that never change."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters import joined_pieces
from codecompanion.adapters.alternation import Speaker, user_form
from codecompanion.adapters.joined_pieces import JoinedPieces

FORM = user_form("text")
SPEAKERS: tuple[Speaker, ...] = ("user", "assistant", "calls", "tool")
PIECES = st.lists(st.tuples(st.sampled_from(SPEAKERS), st.text("abc", max_size=9)), max_size=20)


def rendered(speaker: Speaker, text: str) -> bytes:
    """Return a message with this text as JSON; empty for a silent reply."""
    role = "assistant" if speaker == "calls" else speaker
    return b'{"role":"%s","content":"%s"}' % (role.encode(), text.encode()) if text or speaker != "assistant" else b""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make chunks so small that about two messages fill one."""
    monkeypatch.setattr(joined_pieces, "CHUNK_BYTES", 80)


@pytest.mark.parametrize("form", [None, FORM])
def test_a_growing_list_is_joined_like_a_whole_one(form: joined_pieces.UserForm | None) -> None:
    @given(PIECES)
    def check(spoken: list[tuple[Speaker, str]]) -> None:
        grown = JoinedPieces(form)
        before: tuple[bytes, ...] = ()
        for count, (speaker, text) in enumerate(spoken, 1):
            grown.add(speaker, rendered(speaker, text))
            chunks = grown.between(b'{"messages":[', b"]}")
            assert all(old is new for old, new in zip(before[1:-1], chunks[1:], strict=False))
            before = chunks
            whole = JoinedPieces(form)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(joined_pieces, "CHUNK_BYTES", 1 << 20)
                for one in spoken[:count]:
                    whole.add(one[0], rendered(*one))
                (body,) = whole.between(b'{"messages":[', b"]}")
            assert b"".join(chunks) == body
            messages = msgspec.json.decode(body)["messages"]
            if form is None:
                assert len(messages) == sum(bool(rendered(*one)) for one in spoken[:count])

    check()


def test_a_chat_of_many_chunks_has_one_copy_of_each() -> None:
    """Only the last chunk is rebuilt for the next request."""
    pieces = JoinedPieces()
    for number in range(20):
        pieces.add("user", rendered("user", f"message {number}"))
    first = pieces.between(b"[", b"]")
    pieces.add("user", rendered("user", "one more"))
    second = pieces.between(b"[", b"]")
    assert len(first) > 5
    assert [a is b for a, b in zip(first[1:-1], second[1:], strict=False)] == [True] * (len(first) - 2)
