"""`sessions export --html|--md`: a chat to share, with its secrets hidden; the other formats are unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import ImagePart, Message, TextPart
from codecompanion.store.opening import open_store
from tests.browser import BROWSER, DESK, PHONE, WHY_NOT, browser
from tests.contract.command_line import run
from tests.unit.reports.export.chats import full_chat

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
OWN_KEY = "Xk29fJq0PmZb71TgWv"
NASTY = "</details></pre><script>console.error('out')</script><img src=http://127.0.0.1:1/x.png>```\n## Me\n"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8ffff3f0005fe02fe"
    "a735a1a50000000049454e44ae426082"
)


@pytest.fixture
def data_dir(tmp_path: Path) -> str:
    """Return a data folder whose store has a chat with all kinds of content, secrets and an image."""
    folder = tmp_path / "data"
    store = open_store(folder)
    image = ImagePart(sha256=store.put_blob(PNG), path="shot.png")
    text = f"{NASTY} my key is {KEY}, my token {OWN_KEY}, in {Path.home()}/work/a.py and {Path.home()}ext"
    chat = [event.payload for event in full_chat(text)]
    chat = [payload for payload in chat if not (isinstance(payload, MessageAdded) and payload.message.images)]
    picture = MessageAdded(message=Message(id="p", role="user", content=(TextPart("Look"), image)))
    store.append("chat-abc", [*chat, picture]).result()
    store.close()
    return str(folder)


@pytest.mark.parametrize("form", ["--html", "--md"])
def test_secrets_and_the_home_folder_are_not_exported(data_dir: str, form: str) -> None:
    """Lesson 44: possible keys and the values of the user's own secret variables are hidden."""
    status, out, err = run("sessions", "--data-dir", data_dir, "export", "chat-abc", form, MY_SERVICE_TOKEN=OWN_KEY)
    assert (status, err) == (0, "")
    assert KEY not in out
    assert OWN_KEY not in out
    assert "hidden" in out
    assert f"{Path.home()}/" not in out
    assert "work/a" in out
    assert "</details></pre><script>" not in out.replace("`", "") or form == "--md"


def test_images_are_included_or_left_out(data_dir: str) -> None:
    _, whole, _ = run("sessions", "--data-dir", data_dir, "export", "chat-abc", "--html")
    _, without, _ = run("sessions", "--data-dir", data_dir, "export", "chat-abc", "--html", "--no-images")
    assert 'src="data:image/png;base64,iVBOR' in whole
    assert "data:image" not in without
    assert "Image left out: shot.png" in without


def test_the_view_can_be_shared_alone(data_dir: str) -> None:
    _, out, _ = run("sessions", "--data-dir", data_dir, "export", "chat-abc", "--md", "--view")
    assert "insert_edit" not in out
    assert "Below is a summary" in out


def test_the_transcript_format_is_still_the_default(data_dir: str) -> None:
    _, out, _ = run("sessions", "--data-dir", data_dir, "export", "chat-abc")
    assert json.loads(out.splitlines()[0])["role"] == "user"
    status, out, err = run("sessions", "--data-dir", data_dir, "export", "chat-abc", "--no-images")
    assert (status, out) == (2, "")
    assert "--no-images needs --html or --md" in err


def test_only_one_format_at_a_time_is_accepted(data_dir: str) -> None:
    status, out, err = run("sessions", "--data-dir", data_dir, "export", "chat-abc", "--html", "--md")
    assert (status, out) == (2, "")
    assert "--md: not allowed with argument --html" in err


@pytest.mark.skipif(not BROWSER, reason=WHY_NOT)
async def test_a_browser_shows_the_page_and_runs_nothing_in_it(data_dir: str, tmp_path: Path) -> None:
    """Scripts, images and markup in a chat are shown as text; folds open by keyboard.

    Both colour schemes and a phone are tested.
    """
    page = tmp_path / "chat.html"
    page.write_text(run("sessions", "--data-dir", data_dir, "export", "chat-abc", "--html")[1])
    async with browser() as tab:
        papers = set()
        for dark in (False, True):
            for size in (DESK, PHONE):
                await tab.open(page, dark=dark, size=size)
                assert tab.errors == []
                assert [url for url in tab.requests if not url.startswith("data:")] == [page.as_uri()]
                assert await tab.ask("document.documentElement.scrollWidth <= innerWidth")
            papers.add(await tab.ask("getComputedStyle(document.body).backgroundColor"))
        assert len(papers) == 2
        assert await tab.ask("document.querySelectorAll('script').length") == 0
        assert await tab.ask("document.querySelectorAll('article').length") == 3
        assert await tab.ask("document.images.length") == 1
        assert await tab.ask("document.images[0].naturalWidth") == 1
        await tab.ask("document.querySelector('article summary').focus()")
        for kind in ("keyDown", "keyUp"):
            await tab.send(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
            )
        assert await tab.ask("document.querySelector('article details').open")
        names = await tab.names()
        assert ("heading", "Me") in names
        assert ("article", "CodeCompanion") in names
