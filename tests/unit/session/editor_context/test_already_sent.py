"""File texts in a message: every line is either sent, or found where the reference to it points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.messages import AttachedFile, Message
from codecompanion.retrieval.shown_lines import seen_in
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.session.editor_context.already_sent import MIN_NAMED_CHARS, find_duplicates
from codecompanion.wire.requests import EditorItem, EditorText

FILES = {name: [f"{name} line {n} " + "word " * (n % 9) for n in range(1, 41)] for name in ("a.py", "b.py")}
RANGES = st.tuples(st.sampled_from(sorted(FILES)), st.integers(1, 40), st.integers(1, 40), st.booleans())


def text_of(name: str, first: int, last: int, partial: bool) -> EditorText:
    lines = FILES[name][first - 1 : last]
    if (first, last) == (1, 40):
        return EditorText("\n".join(lines) + "\n", path=name, first=1, whole=True)
    if partial:
        lines = [lines[0][2:], *lines[1:]]
    return EditorText("\n".join(lines), path=name, first=first, partial=partial)


def attached(name: str) -> Message:
    text = "\n".join(FILES[name]) + "\n"
    return text_attachment("file", name, text, f"above {name}", AttachedFile(sha256="x"))


@given(
    st.lists(st.lists(st.one_of(RANGES, st.just(("a.py", 1, 40, False))), min_size=1, max_size=3), max_size=5),
    st.sampled_from([(), ("a.py",), ("a.py", "b.py")]),
)
def test_every_line_is_sent_or_is_where_its_reference_says(wanted, above):
    items = [
        EditorItem(
            written=f"#{{{at}}}", name="x", texts=tuple(text_of(n, min(a, b), max(a, b), p) for n, a, b, p in one)
        )
        for at, one in enumerate(wanted)
    ]
    messages = [attached(name) for name in above]
    ids = [f"m{at}" for at in range(len(items))]
    found = find_duplicates(items, ids, seen_in(messages), {m.id: m for m in messages}, lambda text: text.path)
    sent = {(ids[at], text.path, n) for at, item in enumerate(items) for number, text in enumerate(item.texts)
            if (at, number) not in found and not text.partial
            for n in range(text.first, text.first + text.text.rstrip("\n").count("\n") + 1)}  # fmt: skip
    sent |= {(message.id, message.path, n) for message in messages for n in range(1, 41)}
    for (at, number), occurrence in found.items():
        text = items[at].texts[number]
        last = text.first + text.text.rstrip("\n").count("\n")
        assert all(any((name, text.path, n) in sent for name in occurrence.ids) for n in range(text.first, last + 1))
        assert text.whole or len(text.text) >= MIN_NAMED_CHARS - 40
    once = [(text.path, text.first) for at, item in enumerate(items) for number, text in enumerate(item.texts)
            if text.whole and (at, number) not in found]  # fmt: skip
    assert len(once) == len(set(once)), "a whole file is sent once"
    assert not {path for path, _ in once} & set(above)
