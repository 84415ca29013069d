"""A chat as a page and as Markdown: complete, with removed messages marked, and nothing breaks out of its markup."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from codecompanion.model import history
from codecompanion.model.messages import Message
from codecompanion.reports.export.as_html import chat_as_html
from codecompanion.reports.export.as_markdown import chat_as_markdown
from codecompanion.reports.export.markdown_blocks import blocks_of
from codecompanion.reports.export.reading import Reader, read_conversation
from codecompanion.reports.export.shared_chat import Conversation, ExportedMessage, Note
from codecompanion.workspace.project_files import why_no_text

from ..pages.test_replay_page import read
from .chats import added, full_chat, log_of

PNG = b"\x89PNG not really"
READER = Reader(lambda text: text, lambda sha256: PNG if sha256 == "abc" else None)


def chat_of(text: str = "Why is `pop()` **red**?", reader: Reader = READER) -> Conversation:
    return read_conversation(full_chat(text), reader)


def page_of(chat: Conversation) -> str:
    return chat_as_html(chat, zone=UTC, version="1.2.3")


def markdown_of(chat: Conversation) -> str:
    return chat_as_markdown(chat, zone=UTC, version="1.2.3")


def test_a_chat_is_read_with_all_its_events() -> None:
    chat = chat_of()
    file, user, model, edit, compaction, picture, failed = chat.entries
    assert isinstance(file, ExportedMessage)
    assert (file.who, file.title, file.state) == ("attached", "file: src/stack.py", "")
    assert isinstance(user, ExportedMessage)
    assert (user.who, user.state) == ("user", "summarised")
    assert isinstance(model, ExportedMessage)
    assert (model.who, model.title, model.state) == ("model", "openai · gpt-5", "summarised")
    tool = model.tools[0]
    assert (tool.status, tool.state, tool.result) == ("ok", "summarised", "done\nWhy is `pop()` **red**?")
    assert tool.arguments.startswith("path: src/stack.py\ncode: ")
    assert edit == Note("1 tool result cleared · 48.2k → 21.7k tokens", "", undone=True)
    assert isinstance(compaction, Note)
    assert compaction.text == "3 messages summarised · 21.7k → 4.0k tokens · by gpt-5-mini"
    assert isinstance(picture, ExportedMessage)
    assert picture.pictures[0].content == PNG
    assert isinstance(failed, Note)
    assert failed.text.startswith("The turn failed: The endpoint refused")


def test_the_page_shows_everything() -> None:
    page = page_of(chat_of())
    text = "".join(read(page).text)
    for part in (
        "no longer sent: summarised", "insert_edit src/stack.py", "def pop(self): ...", "undone", "openai · gpt-5",
        "Reasoning", "3 messages summarised", "1. Request", "CodeCompanion 1.2.3", "-old", "+new",
    ):  # fmt: skip
        assert part in text or part in page, part
    assert f'src="data:image/png;base64,{base64.b64encode(PNG).decode()}"' in page
    assert "<code>pop()</code> <strong>red</strong>" in page
    assert "https:" not in page


def test_the_markdown_shows_everything() -> None:
    text = markdown_of(chat_of())
    headings = [line for line in text.splitlines() if re.match("#{1,2} ", line)]
    assert [heading.partition(" (")[0] for heading in headings[1:]] == ["## Me", "## CodeCompanion", "## Me"]
    assert "```python\ndef pop(self): ...\n```" in text
    assert "```diff\n-old\n" in text
    assert "### 1. Request" in text
    assert text.count("<details>") == text.count("</details>") == 4
    assert "*no longer sent: summarised*" in text


def test_images_can_be_left_out() -> None:
    chat = chat_of(reader=Reader(lambda text: text))
    assert "Image left out: shot.png" in page_of(chat)
    assert "<img" not in page_of(chat)
    assert "Image left out: shot.png" in markdown_of(chat)


def test_the_view_alone_can_be_exported() -> None:
    chat = read_conversation(full_chat(), READER, view_only=True)
    assert [entry.title for entry in chat.messages] == ["file: src/stack.py", "summary", ""]


def test_an_empty_chat_is_reported() -> None:
    chat = read_conversation(log_of(), READER)
    assert chat.title == "Chat"
    assert "This chat is empty." in page_of(chat)
    assert "This chat is empty." in markdown_of(chat)


def test_every_text_is_cleaned() -> None:
    """All displayed text passed the cleaner: there is no other path."""
    secret = "TOPSECRET"
    chat = chat_of(secret, Reader(lambda text: text.replace(secret, "[hidden]"), lambda sha256: PNG))
    assert secret not in page_of(chat)
    assert secret not in markdown_of(chat)
    assert "[hidden]" in page_of(chat)


def test_call_ids_may_repeat() -> None:
    """Each call is paired with the next result."""
    from codecompanion.model.messages import ToolCall

    call = ToolCall("same", "read_file", "{}")
    pairs = [
        added(message)
        for at in (1, 2)
        for message in (
            Message(id=f"a{at}", role="assistant", tool_calls=(call,)),
            Message(id=f"t{at}", role="tool", tool_call_id="same", content=f"text {at}"),
        )
    ]
    chat = read_conversation(log_of(*pairs), READER)
    assert [one.tools[0].result for one in chat.messages] == ["text 1", "text 2"]


def test_a_name_stays_readable_in_the_source() -> None:
    """Only characters that Markdown would interpret are escaped."""
    chat = chat_of("x")
    title = "OPENAI_API_KEY! a > b & c, but _this_ &lt; <b> *not*"
    source = markdown_of(msgspec.structs.replace(chat, title=title))
    assert "# OPENAI_API_KEY! a > b & c, but &#95;this&#95; &#38;lt; &#60;b> &#42;not&#42;" in source


PIECES = st.sampled_from(
    [
        "</details>", "</code></pre>", "</main>", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--",
        "-->", "```", "````", "~~~", "```html", "`", "``", "<details>", "## Me", "# Me", "Me\n---", "Me\n===", "> ",
        "- ", "    ", "\t", "\n", "\n\n", "&lt;script&gt;", "&#60;b>", "![x](http://evil.example/a.png)", "\u2028",
        "[x](javascript:alert(1))", "[x]: javascript:alert(1)", "<a href='http://evil.example'>", "]]>", "\\", "\x00",
        "\u202e", "\r", "|", "1. ", "<b\n>", "<details\n", "[x][y]", "<http://evil.example>", "`<b>`", "`` ` <b>",
        "text", "a", "**", "<?php", "<!X",
    ]
)  # fmt: skip
NASTY = st.lists(PIECES | st.text(max_size=6), max_size=14).map("".join)


@given(NASTY)
def test_no_text_breaks_out_of_the_page(text: str) -> None:
    """The page has the same elements as for harmless text, except paragraphs, code and bold; nothing loads or runs."""
    page = page_of(chat_of(text))
    seen = read(page)
    allowed = {
        "html", "head", "meta", "link", "title", "style", "body", "main", "h1", "h2", "p", "article", "header", "span",
        "time", "details", "summary", "pre", "code", "strong", "ins", "del", "div", "img", "footer",
    }  # fmt: skip
    assert set(seen.tags) <= allowed
    assert seen.attributes <= {
        "lang", "charset", "http-equiv", "content", "name", "rel", "href", "class", "datetime", "aria-labelledby", "id",
        "tabindex", "aria-hidden", "alt", "src",
    }  # fmt: skip
    plain = read(page_of(chat_of("harmless")))
    for tag in ("article", "details", "summary", "h2", "img", "link", "meta", "main", "footer"):
        assert seen.tags.count(tag) == plain.tags.count(tag), tag
    page.encode()


@given(NASTY)
@example("\\![x](http://evil.example/a.png)")
@example("\\\\![x](http://evil.example/a.png)")
@example("[x\\](javascript:alert(1))")
@example("[x\\\\](javascript:alert(1))")
def test_no_text_breaks_out_of_the_markdown(text: str) -> None:
    """A CommonMark parser finds only our headings and markup, no image that is loaded and no link that runs."""
    text_of = markdown_of(chat_of(text))
    tokens = MarkdownIt("commonmark").parse(text_of)
    top = [
        (token.tag, tokens[at + 1].content.partition(" (")[0])
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2")
    ]
    assert [name for tag, name in top if tag == "h2"] == ["Me", "CodeCompanion", "Me"]
    assert len(top) == 4
    inline = [child for token in tokens for child in (token.children or [])]
    made_by, *raw = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert made_by == "<!-- @generated by CodeCompanion 1.2.3 -->"
    assert all(re.fullmatch(r"<details>\n<summary>[^<]*(<em>[^<]*</em>)?</summary>|</details>", one) for one in raw), (
        raw
    )
    assert len(raw) == 8
    assert {child.content for child in inline if child.type == "html_inline"} <= {"<code>", "</code>"}
    assert [child.attrGet("src")[:5] for child in inline if child.type == "image"] == ["data:"]
    links = [str(child.attrGet("href")).lower() for child in inline if child.type == "link_open"]
    assert not [link for link in links if link.startswith(("javascript:", "data:"))]
    text_of.encode()


@given(NASTY)
def test_code_blocks_keep_every_line(text: str) -> None:
    for block in blocks_of(text):
        assert "\r" not in block.text
        assert all(line in text.replace("\r\n", "\n").replace("\r", "\n") for line in block.text.split("\n"))


@pytest.mark.parametrize("size", [200_000])
def test_a_huge_paragraph_is_written_unchanged(size: int) -> None:
    chat = read_conversation(log_of(added(Message(id="u", role="user", content="`**" * size))), READER)
    assert len(page_of(chat)) > 3 * size
    assert len(markdown_of(chat)) > size


def test_rules_are_shown_without_the_markup_for_the_model() -> None:
    rules = Message(id="r", role="user", tag="rules", path="AGENTS.md", content='<rules path="A">\nTabs.\n</rules>')
    (shown,) = read_conversation(log_of(added(rules)), READER).messages
    assert shown.text == "Tabs."


def test_a_turn_stopped_by_the_user_is_marked() -> None:
    chat = read_conversation(log_of(history.TurnEnded(turn_id="1", reason="stopped")), READER)
    assert chat.entries == (Note("Stopped by the user."),)


@pytest.mark.parametrize("written", [page_of, markdown_of])
def test_an_export_does_not_count_as_text_of_the_project(written: Callable[[Conversation], str]) -> None:
    """Exports are written to the current folder; otherwise the next question would get the chat itself as code."""
    assert why_no_text(written(chat_of()).encode()) == "generated"
