"""`:CodeCompanion export`: writes the current chat to a file that can be shared, through the real host."""

from __future__ import annotations

from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread


def test_a_chat_is_exported_and_nothing_is_overwritten(nvim_factory, tmp_path):
    """The cases are an empty chat, a page, Markdown by extension, an existing name and a missing folder."""
    with ChatServerThread([reply("Because <b>it</b> is.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(160, 30))
        chat.nvim.command("CodeCompanion export")
        chat.nvim.wait_screen("Nothing to export: this chat is empty.")
        chat.say(f"Why is it red? My key is {KEY}")
        chat.nvim.command(f"cd {tmp_path}")
        chat.nvim.command("CodeCompanion export")
        chat.nvim.wait_screen("Exported to ")
        (page,) = tmp_path.glob("*.html")
        assert page.name.startswith("why-is-it-red")
        text = page.read_text()
        assert "Because &lt;b&gt;it&lt;/b&gt; is." in text
        assert KEY not in text
        assert KEY not in page.name
        chat.nvim.command("CodeCompanion export")
        chat.nvim.wait_for(lambda: len(list(tmp_path.glob("*.html"))) == 2, "a second page")
        chat.nvim.command("CodeCompanion export my chat.md")
        written = tmp_path / "my chat.md"
        chat.nvim.wait_for(lambda: written.exists() and "## CodeCompanion" in written.read_text(), "a Markdown file")
        chat.nvim.command("CodeCompanion export html my chat.md")
        chat.nvim.wait_screen("my chat.md already exists; choose another name.")
        assert "## CodeCompanion" in written.read_text()
        chat.nvim.command("CodeCompanion export md no/where.md")
        chat.nvim.wait_screen("cannot be written: No such file or directory.")
