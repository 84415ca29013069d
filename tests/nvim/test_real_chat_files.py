"""PDFs and models through the whole stack: keys in a real Neovim, the real host, real Chat Completions bytes."""

from __future__ import annotations

import base64

from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

PAGES = b"<< /Type /Pages /Kids [3 0 R] /Count 12 >>"
PDF = b"%PDF-1.7\n1 0 obj\n" + PAGES + b"\nendobj\n%%EOF"


def sent(server):
    return [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")][-1]


def test_a_pdf_is_attached_shown_with_its_pages_and_sent(nvim_factory, tmp_path):
    """`/file` with a PDF adds its line to the context block, sends its bytes and stores a placeholder in the log."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "plan.pdf").write_bytes(PDF)
    with ChatServerThread([reply("Twelve pages.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"documents": True})
        chat.send("/file plan.pdf")
        screen = chat.nvim.wait_screen(r"<document>plan.pdf</document>")
        assert "12 pages" in screen
        chat.nvim.wait_screen(r"Attached plan\.pdf")
        chat.say("How long is it?")
        assert "Twelve pages." in chat.nvim.screen()
        assert server.refusals == []
        text, document, *_ = next(m["content"] for m in sent(server) if isinstance(m["content"], list))
        assert text["text"] == "The document `plan.pdf` (12 pages):"
        data = "data:application/pdf;base64," + base64.b64encode(PDF).decode()
        assert document == {"type": "file", "file": {"filename": "plan.pdf", "file_data": data}}
        (message,) = [m for m in chat.view().messages if m.tag == "document"]
        assert message.content[1].pages == 12


def test_an_endpoint_without_pdfs_gets_a_note(nvim_factory, tmp_path):
    """The note tells the model that the file is missing; the chat continues."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "plan.pdf").write_bytes(PDF)
    with ChatServerThread([reply("I cannot see it.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("/file plan.pdf")
        chat.nvim.wait_screen(r"<document>plan.pdf</document>")
        chat.say("How long is it?")
        assert "[The document plan.pdf was not sent: this endpoint does not accept PDFs.]" in str(sent(server))


def test_a_file_that_is_not_a_pdf_is_reported_and_not_attached(nvim_factory, tmp_path):
    """One sentence names the file."""
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("fake.pdf", "hello")])
        chat.send("/file fake.pdf")
        chat.nvim.wait_screen(r"fake\.pdf is not a PDF")
        assert "<document>" not in chat.text()


def test_a_question_with_a_file_larger_than_the_window_returns_to_the_input(nvim_factory, tmp_path):
    """R-524: the attachment shows the problem, nothing is compacted or sent, the text is in the input, and `dd` helps.

    The chat used to be summarised to no effect, and the question stayed as if it had been sent.
    """
    with ChatServerThread([reply("word " * 3_000), reply("word " * 3_000), reply("It is gone.")], key=KEY) as server:
        files = [("docs/big.txt", "a line of text\n" * 6_000)]
        chat = start_chat(nvim_factory, tmp_path, server, opts={"context_window": 16_000}, files=files)
        chat.say("first")
        chat.say("second")
        before, asked = chat.view().messages, len(server.requests)
        chat.send("/file docs/big.txt")
        chat.nvim.wait_screen(r"Press dd on its line")
        chat.say("what is in the file?")
        assert chat.draft() == "what is in the file?"
        assert "✗ Not sent: " in chat.text()
        assert "dd on its line" in chat.text()
        assert chat.text().count("what is in the file?") == 1
        assert [m for m in chat.view().messages if m.tag != "file"] == list(before)
        assert len(server.requests) == asked
        chat.nvim.feed("ggjdd")
        chat.nvim.wait_for(lambda: "<file>" not in chat.text(), "the file to be detached")
        chat.nvim.feed("GSand now?<Esc>")
        chat.nvim.wait_for(lambda: chat.draft() == "and now?", "the other words")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_for(lambda: "It is gone." in chat.text(), "the reply")
        assert [m["content"] for m in sent(server) if m["role"] == "user"] == ["first", "second", "and now?"]


def test_models_are_listed_with_the_window_reported_by_their_endpoint(nvim_factory, tmp_path):
    """`ga` lists usable models first, then the others with the reason."""
    listing = {"data": [{"id": "large", "max_model_len": 32768}, {"id": "test-model"}]}
    with ChatServerThread(key=KEY, pages={"/v1/models": listing}) as server:
        plain = {"extends": "openai_compatible", "env": {"url": server.url, "api_key": "LOOP_KEY"}}
        chat = start_chat(nvim_factory, tmp_path, server, options={"adapters": {"http": {"plain": plain}}})
        chat.nvim.lua("vim.ui.select = function(items, opts, done) _G.shown = vim.tbl_map(opts.format_item, items) end")
        chat.nvim.feed("ga")
        chat.nvim.wait_lua("return _G.shown ~= nil")
        shown = chat.nvim.lua("return _G.shown")
        assert [line for line in shown if line.startswith("plain")] == ["plain · large · 32.8k", "plain · test-model"]
        unusable = ["anthropic · needs ANTHROPIC_API_KEY", "openai · needs OPENAI_API_KEY"]
        assert [line for line in shown if line.startswith(("anthropic", "openai ·"))] == unusable
        usable = [n for n, line in enumerate(shown) if line.startswith(("plain", "offline"))]
        assert max(usable) < min(map(shown.index, unusable))
