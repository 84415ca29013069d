"""Images from the clipboard, and paths dropped onto the terminal: offered, never attached unasked."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from chat_driver import ChatDriver, make_chat
from harness import Nvim

FILES_IN = "return require('codecompanion.chat.sources.dropped_files').files_in(...)"
OFFER = "gA attaches"


def png() -> bytes:
    """Return a picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def chat_with(nvim_factory: Callable[..., Nvim], programs: Path, **env: str) -> ChatDriver:
    """Return a chat whose Neovim finds only these programs and those of the shell."""
    own = {"WAYLAND_DISPLAY": "", "DISPLAY": "", **env}
    chat = make_chat(nvim_factory, env=own)
    chat.nvim.lua("vim.env.PATH = ...", f"{programs}:/usr/bin:/bin")
    return chat


def attached(chat: ChatDriver) -> list[dict[str, object]]:
    return list(chat.sent("attach"))


@pytest.mark.parametrize(
    ("name", "script", "env"),
    [
        ("wl-paste", 'printf %s "$DATA" | base64 -d', {"WAYLAND_DISPLAY": "wayland-9"}),
        ("xclip", 'printf %s "$DATA" | base64 -d', {"DISPLAY": ":9"}),
    ],
)
def test_an_image_in_the_clipboard_is_attached(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, name: str, script: str, env: dict[str, str]
) -> None:
    """The image is stored in a file that only the user can read."""
    program(tmp_path / "bin", name, script)
    chat = chat_with(nvim_factory, tmp_path / "bin", DATA=base64.b64encode(png()).decode(), **env)
    chat.nvim.feed("Gi/paste<Esc><CR>")
    chat.nvim.wait_for(lambda: attached(chat))
    [sent] = attached(chat)
    path = Path(str(sent["path"]))
    assert sent["kind"] == "image"
    assert path.read_bytes() == png()
    assert path.stat().st_mode & 0o077 == 0


def test_an_image_command_without_a_path_uses_the_clipboard(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """If the project has no image, it is attached immediately; otherwise it is the first choice."""
    program(tmp_path / "bin", "wl-paste", 'printf %s "$DATA" | base64 -d')
    data = {"DATA": base64.b64encode(png()).decode(), "WAYLAND_DISPLAY": "wayland-9"}
    chat = chat_with(nvim_factory, tmp_path / "bin", **data)
    work = tmp_path / "pictures"
    work.mkdir()
    chat.nvim.lua("vim.fn.chdir(...)", str(work))
    chat.nvim.feed("Gi/image<Esc><CR>")
    chat.nvim.wait_for(lambda: attached(chat))
    [sent] = attached(chat)
    assert Path(str(sent["path"])).read_bytes() == png()
    (work / "mine.png").write_bytes(png())
    chat.nvim.lua("vim.ui.select = function(items, _, done) _G.offered = items; done(items[1], 1) end")
    chat.nvim.feed("Gi/image<Esc><CR>")
    chat.nvim.wait_lua("return _G.offered ~= nil")
    assert "the image in the clipboard" in str(chat.nvim.lua("return vim.inspect(_G.offered)"))


@pytest.mark.parametrize(
    ("script", "env", "why"),
    [
        ("echo no image; exit 1", {"WAYLAND_DISPLAY": "w"}, "No image in the clipboard"),
        ("", {}, "The clipboard cannot be read here"),
        (None, {"WAYLAND_DISPLAY": "w"}, "clipboard: wl-paste is not installed"),
    ],
)
def test_a_missing_image_clipboard_or_program_is_reported(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, script: str | None, env: dict[str, str], why: str
) -> None:
    """One sentence reports it, and the command is back in the input."""
    (tmp_path / "bin").mkdir()
    if script is not None:
        program(tmp_path / "bin", "wl-paste", script)
    chat = chat_with(nvim_factory, tmp_path / "bin", **env)
    chat.nvim.feed("Gi/paste<Esc><CR>")
    chat.nvim.wait_screen(why)
    assert not attached(chat)
    assert "/paste" in chat.text()


def test_paths_are_recognised_as_terminals_paste_them(nvim: Nvim, tmp_path: Path) -> None:
    """Paths may be quoted, escaped or URIs, and there may be several.

    If one of the words is not a file, nothing is recognised.
    """
    plain, spaced = tmp_path / "a.png", tmp_path / "with spaces'n more.txt"
    plain.touch()
    spaced.touch()
    uri = "file://" + str(spaced).replace(" ", "%20")
    escaped = str(spaced).replace(" ", "\\ ").replace("'", "\\'")
    for text in (str(spaced), f'"{spaced}"', escaped, uri, f"{escaped} \n"):
        assert nvim.lua(FILES_IN, text) == [str(spaced)], text
    assert nvim.lua(FILES_IN, f"'{plain}' {escaped}") == [str(plain), str(spaced)]
    for text in (f"look at {plain}", "", " ", "/", str(tmp_path), "/no/such/file", "a.png", f"'{plain}", "file://%zz"):
        assert nvim.lua(FILES_IN, text) == [], text


@pytest.mark.parametrize("phases", [[-1], [1, 3], [1, 2, 3]])
def test_a_dropped_path_is_offered_and_attached_with_a_key(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, phases: list[int]
) -> None:
    """The text stays; the key attaches the file and removes the line; undo restores the line."""
    picture = tmp_path / "a picture.png"
    picture.write_bytes(png())
    chat = make_chat(nvim_factory, size=(160, 30))
    chat.nvim.feed("Gi")
    text = f"'{picture}'"
    pieces = [text[:5], text[5:9], text[9:]] if len(phases) == 3 else [text, ""][: len(phases)]
    for piece, phase in zip(pieces, phases, strict=True):
        chat.nvim.request("nvim_paste", piece, False, phase)
    chat.nvim.wait_screen(OFFER)
    assert not attached(chat)
    chat.nvim.feed("<Esc>gA")
    chat.nvim.wait_for(lambda: attached(chat))
    [sent] = attached(chat)
    assert (sent["kind"], sent["path"]) == ("image", str(picture))
    assert text not in chat.text()
    chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: text in chat.text())


def test_other_pastes_are_left_alone(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """These are prose with a path in it, relative names, and text pasted elsewhere."""
    (tmp_path / "a.txt").touch()
    chat = make_chat(nvim_factory)
    chat.nvim.feed("Gi")
    chat.nvim.request("nvim_paste", f"see {tmp_path}/a.txt\nand more", True, -1)
    chat.nvim.settle()
    assert OFFER not in chat.nvim.screen()
    chat.nvim.feed("<Esc>")
    chat.nvim.command("new")
    chat.nvim.request("nvim_paste", f"{tmp_path}/a.txt", True, -1)
    chat.nvim.settle()
    assert OFFER not in chat.nvim.screen()
    assert chat.nvim.lines() == [f"{tmp_path}/a.txt"]
