"""The private Python environment: creation, reuse, recreation and error messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import REPO, Nvim

INSTALL = """
_G.install = require("codecompanion.install")
_G.report, _G.problem, _G.done = {}, nil, false
_G.run = function()
  install.run(function(text) table.insert(_G.report, text) end, function(problem)
    _G.problem, _G.done = problem or "", true
  end)
end
"""

# A fake system Python: answers the probe, creates "environments" that are copies of it, and fails at
# the place named by the test. Its output is that of the real pip and uv.
FAKE_PYTHON = """#!/bin/sh
echo "$*" >> "$FAKE_LOG"
case "$*" in
  *ensurepip*) [ "$FAKE_FAIL" = probe ] && { echo "$FAKE_OUTPUT" >&2; exit 127; }
     echo "${FAKE_VERSION:-3 12 4 1}"; exit 0 ;;
  *"-m venv"*) for dir in "$@"; do :; done
     [ "$FAKE_FAIL" = venv ] && { echo "$FAKE_OUTPUT" >&2; exit 1; }
     mkdir -p "$dir/bin" && cp "$0" "$dir/bin/python"; exit 0 ;;
  *"-m pip"*) [ "$FAKE_FAIL" = pip ] && { echo "$FAKE_OUTPUT" >&2; exit 1; }
     echo "Collecting pynvim==0.6.0"; exit 0 ;;
  *--check*) [ "$FAKE_FAIL" = check ] && { echo "codecompanion: x lacks pynvim" >&2; exit 2; }; exit 0 ;;
  *compileall*) exit 0 ;;
  *python_version*) echo 3.12.4; exit 0 ;;
  *rmtree*) shift 3; rm -rf "$@"; exit 0 ;;
esac
echo "unexpected: $*" >&2; exit 9
"""


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> Callable[..., Nvim]:
    """Return a function that starts a Neovim whose only programs are a fake Python and a shell."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").write_text(FAKE_PYTHON)
    (programs / "python3").chmod(0o755)
    for name in ("sh", "mkdir", "cp", "rm", "cat"):
        (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")

    def start(**variables: str) -> Nvim:
        env = {"PATH": str(programs), "FAKE_LOG": str(tmp_path / "calls"), **variables}
        nvim = nvim_factory(env=env, init=variables.pop("INIT", ""))
        nvim.lua(INSTALL)
        return nvim

    return start


def install(nvim: Nvim) -> str:
    """Run an installation; return the error, or "" on success."""
    nvim.lua("_G.done = false; run()")
    nvim.wait_lua("return _G.done")
    return str(nvim.lua("return _G.problem"))


def environment(nvim: Nvim) -> dict[str, Any] | None:
    """Return the environment in use."""
    found = nvim.lua("return install.environment() or false")
    return found or None


def test_an_installation_creates_an_environment_with_a_stamp(start: Callable[..., Nvim]) -> None:
    """The stamp contains the hash of the lock file and the Python version."""
    nvim = start()
    assert environment(nvim) is None
    assert install(nvim) == ""
    made = environment(nvim)
    assert made is not None
    assert made["fresh"]
    assert made["stamp"]["python"] == "3.12.4"
    assert made["stamp"]["tool"] == "pip"
    said = nvim.lua("return _G.report")
    assert said[0] == "Installing Python packages: creating the environment"
    assert any("1 of " in text for text in said), said
    assert said[-1] == "Installing Python packages: checking"


def test_a_changed_lock_file_makes_the_environment_stale_but_usable(start: Callable[..., Nvim]) -> None:
    """After an update without the build step, the old packages are used until the new ones are installed."""
    nvim = start()
    install(nvim)
    made = environment(nvim)
    assert made is not None
    stamp = Path(made["dir"], "codecompanion-stamp.json")
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"lock": "0" * 64}))
    stale = environment(nvim)
    assert stale is not None
    assert not stale["fresh"]
    assert install(nvim) == ""
    fresh = environment(nvim)
    assert fresh is not None
    assert fresh["fresh"]


@pytest.mark.parametrize("damage", ["", "not json", "[]", '{"lock": 1}', '{"lock": "x", "interpreter": "/gone"}'])
def test_an_environment_with_a_broken_stamp_is_not_used(start: Callable[..., Nvim], damage: str) -> None:
    """The stamp may be broken after an interrupted installation, or if Python was replaced."""
    nvim = start()
    install(nvim)
    made = environment(nvim)
    assert made is not None
    Path(made["dir"], "codecompanion-stamp.json").write_text(damage)
    assert environment(nvim) is None
    assert install(nvim) == ""
    assert environment(nvim) is not None


def test_an_environment_with_a_missing_python_is_not_used(start: Callable[..., Nvim]) -> None:
    """This happens if the system replaced Python 3.11 with 3.13."""
    nvim = start()
    install(nvim)
    made = environment(nvim)
    assert made is not None
    Path(made["python"]).unlink()
    assert environment(nvim) is None


@pytest.mark.parametrize(
    ("step", "output", "sentence"),
    [
        ("pip", "Failed to establish a new connection: [Errno -2] Name or service not known", "No network connection"),
        ("pip", "Temporary failure in name resolution", "No network connection"),
        ("pip", "error: failed to write: No space left on device (os error 28)", "The disk is full"),
        ("venv", "Error: [Errno 28] No space left on device: '/x'", "The disk is full"),
        ("venv", "[Errno 30] Read-only file system", "read-only"),
        ("venv", "The virtual environment was not created because ensurepip is not available.", "create virtual"),
        (
            "pip",
            "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "does not match the lock file",
        ),
        ("pip", "something nobody foresaw", "not installed: something nobody foresaw"),
        ("check", "", "The new Python environment does not work"),
    ],
)
def test_a_failed_installation_gives_the_reason_and_changes_nothing(
    start: Callable[..., Nvim], tmp_path: Path, step: str, output: str, sentence: str
) -> None:
    """Each failure has a clear message, and the environment in use stays."""
    nvim = start()
    install(nvim)
    before = environment(nvim)
    nvim.lua("vim.env.FAKE_FAIL, vim.env.FAKE_OUTPUT = ...", step, output)
    assert sentence in install(nvim)
    assert environment(nvim) == before
    parent = Path(nvim.lua("return install.data_dir()"), "venv")
    assert len(list(parent.iterdir())) == 1, "what was half made is removed"
    log = Path(nvim.lua("return install.log_path()"))
    assert output in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("3 10 1 1", "No Python 3.11 or newer was found"),
        ("3 11 2 0", "install the package python3.11-venv"),
        ("garbage", "No Python 3.11 or newer was found"),
    ],
)
def test_an_unfit_python_is_explained(start: Callable[..., Nvim], version: str, sentence: str) -> None:
    """The error names the package to install."""
    nvim = start(FAKE_VERSION=version)
    assert sentence in install(nvim)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "warning\npython3: symbol lookup error: undefined symbol: x",
            "python3: symbol lookup error: undefined symbol: x",
        ),
        ("", "it printed nothing"),
    ],
)
def test_a_python_that_does_not_run_is_named_with_its_reason(
    start: Callable[..., Nvim], output: str, sentence: str
) -> None:
    """Installing another Python is the wrong advice for one that is broken; a Python 2 counts as missing."""
    nvim = start(FAKE_FAIL="probe", FAKE_OUTPUT=output)
    assert f"/python3 does not run: {sentence}. Repair it, or install uv" in install(nvim)
    nvim.command("CodeCompanion log install")
    nvim.wait_screen("status 127")
    nvim.lua("vim.env.FAKE_OUTPUT = ...", "SyntaxError: invalid syntax")
    assert "No Python 3.11 or newer was found" in install(nvim)


def test_two_calls_create_one_environment(start: Callable[..., Nvim]) -> None:
    """The build step and the first chat may run at the same time."""
    nvim = start()
    nvim.lua("_G.count = 0; for _ = 1, 3 do install.run(function() end, function() _G.count = _G.count + 1 end) end")
    nvim.wait_lua("return _G.count == 3")
    assert len(list(Path(nvim.lua("return install.data_dir()"), "venv").iterdir())) == 1


def test_an_installation_in_another_editor_is_awaited(start: Callable[..., Nvim]) -> None:
    """If two Neovims start on first use, the second shows the progress of the first and uses its result."""
    nvim = start()
    claim = Path(nvim.lua("return install.data_dir()"), "installing")
    claim.parent.mkdir(parents=True, exist_ok=True)
    claim.write_text(f"{os.getpid()}\n7 of 37 downloaded")
    nvim.lua("run()")
    nvim.wait_lua("return #_G.report > 0")
    assert nvim.lua("return _G.report") == ["Another Neovim is installing Python packages: 7 of 37 downloaded"]
    assert not nvim.lua("return _G.done")
    folder = Path(nvim.lua("return install.data_dir()"), "venv", "5000-1")
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin/python"
    python.write_text("")
    lock = nvim.lua("return vim.fn.sha256(table.concat(vim.fn.readfile(..., 'b'), '\\n'))", f"{REPO}/requirements.lock")
    stamp = {"lock": lock, "python": "3.12.4", "interpreter": str(python.resolve()), "tool": "uv"}
    (folder / "codecompanion-stamp.json").write_text(json.dumps(stamp))
    claim.unlink()
    nvim.wait_lua("return _G.done")
    assert nvim.lua("return _G.problem") == ""
    assert len(list(folder.parent.iterdir())) == 1


@pytest.mark.parametrize("end", ["killed", "silent", "failed"])
def test_a_stopped_installation_in_another_editor_is_not_awaited(start: Callable[..., Nvim], end: str) -> None:
    """If the other installation was killed, suspended (or its process id reused) or failed, this Neovim takes over."""
    nvim = start()
    claim = Path(nvim.lua("return install.data_dir()"), "installing")
    half = claim.parent / "venv" / "5000-1"
    (half / "bin").mkdir(parents=True)
    claim.write_text(f"{999999999 if end == 'killed' else os.getpid()}\n7 of 37 downloaded")
    if end == "silent":
        os.utime(claim, (1, 1))
    nvim.lua("run()")
    if end == "failed":
        nvim.wait_lua("return #_G.report > 0")
        claim.unlink()
    nvim.wait_lua("return _G.done")
    assert nvim.lua("return _G.problem") == ""
    assert environment(nvim) is not None
    assert not claim.exists()
    assert not half.exists(), "what was never finished is removed"


def test_only_the_newest_two_environments_are_kept(start: Callable[..., Nvim]) -> None:
    """One environment per update would fill the disk; another editor may still use the previous one."""
    nvim = start()
    parent = Path(nvim.lua("return install.data_dir()"), "venv")
    for name in ("1000-1", "2000-1", "3000-1"):
        (parent / name / "bin").mkdir(parents=True)
        (parent / name / "codecompanion-stamp.json").write_text("{}")
    (parent / "mine").mkdir()
    assert install(nvim) == ""
    left = sorted(path.name for path in parent.iterdir())
    assert len(left) == 3
    assert "3000-1" in left
    assert "mine" in left


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("uv", ["downloading 37", "unpacking 37", "compiling 37"]),
        ("pip", [*(f"{number} of 37 downloaded" for number in range(1, 38)), "unpacking 37"]),
    ],
)
def test_progress_is_parsed_from_the_tools_output(nvim: Nvim, tool: str, expected: list[str], size: int) -> None:
    """The recorded output of uv 0.13 and pip 23 is read in chunks of any size.

    The lock file had 38 packages at that time.
    """
    text = Path(__file__).with_name("recorded").joinpath(f"{tool}-install.txt").read_text()
    lock = "".join(f"package-{number}==1.0 --hash=sha256:0\n" for number in range(38))
    said = nvim.lua(
        """
        local text, lock, size = ...
        local output, said = require("codecompanion.install.installer_output"), {}
        local read = output.reader(output.count(lock), function(line) table.insert(said, line) end)
        for from = 1, #text, size do read(text:sub(from, from + size - 1)) end
        return said
        """,
        text,
        lock,
        size,
    )
    assert said == expected


def test_a_missing_log_folder_is_not_an_error(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """With a file in place of the state folder, the packages are still installed."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state/nvim").write_text("")
    nvim = start(NVIM_LOG_FILE=str(tmp_path / "nvim.log"))  # without it Neovim 0.12 may wait for a key itself
    assert install(nvim) == ""


def test_an_unwritable_data_folder_is_named(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """A file in place of the folder makes this test work for root too."""
    nvim = start()
    blocked = Path(nvim.lua("return install.data_dir()"))
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("")
    assert "Install failed: cannot write to" in install(nvim)
    assert not nvim.blocked()


def test_the_first_use_installs_with_a_message(start: Callable[..., Nvim]) -> None:
    """Progress is visible during the first use; after a failure, the message names the command that tries again."""
    nvim = start(FAKE_FAIL="pip", FAKE_OUTPUT="Temporary failure in name resolution")
    nvim.lua("require('codecompanion.host').request('doctor', {}, function(err) _G.failure = err end)")
    failure = nvim.wait_lua("return _G.failure or false")
    assert "No network connection" in failure
    assert ":CodeCompanion install" in failure
    assert not nvim.blocked()


def test_the_build_step_runs_as_in_lazy_nvim(start: Callable[..., Nvim]) -> None:
    """`loadfile(build.lua)` runs in a coroutine that is resumed until it ends; each yield is a progress message."""
    nvim = start()
    messages = nvim.lua(
        """
        local thread = coroutine.create(assert(loadfile(...)))
        local messages = {}
        vim.wait(10000, function()
          local ok, message = coroutine.resume(thread)
          table.insert(messages, message)
          assert(ok, message)
          return coroutine.status(thread) == "dead"
        end, 10)
        return messages
        """,
        str(REPO / "build.lua"),
    )
    assert messages[0] == "Python packages: creating the environment"
    assert messages[-1] == "the Python environment is ready"
    assert environment(nvim) is not None


def test_a_failing_build_step_is_an_error_of_one_line(start: Callable[..., Nvim]) -> None:
    """lazy.nvim shows the error in its window."""
    nvim = start(FAKE_FAIL="pip", FAKE_OUTPUT="No space left on device")
    error = nvim.lua(
        """
        local thread = coroutine.create(assert(loadfile(...)))
        local failure
        vim.wait(10000, function()
          local ok, message = coroutine.resume(thread)
          failure = not ok and message or nil
          return coroutine.status(thread) == "dead"
        end, 10)
        return failure
        """,
        str(REPO / "build.lua"),
    )
    assert "The disk is full" in error
    assert "\n" not in error


@pytest.mark.slow("waits for the retries of pip")
def test_pip_fails_without_a_network_in_a_real_environment(nvim_factory: Callable[..., Nvim], tmp_path: Path) -> None:
    """The test uses the real venv and pip with an index that never answers: a fake could drift from pip's output."""
    programs = tmp_path / "real"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.base_prefix, "bin", "python3").resolve())
    dead = "http://127.0.0.1:9/simple"
    env = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PIP_INDEX_URL": dead,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
    }
    nvim = nvim_factory(env=env)
    nvim.lua(INSTALL)
    nvim.lua("run()")
    nvim.wait_lua("return _G.done")
    problem = nvim.lua("return _G.problem")
    assert "No network connection" in problem or "does not answer" in problem


def test_an_extra_is_installed_from_its_own_lock_file_and_kept(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """`:CodeCompanion install semantic` installs it, and later installations keep it."""
    nvim = start()
    assert install(nvim) == ""
    nvim.lua(
        "_G.done = false; install.add('semantic', function(problem) _G.done, _G.problem = true, problem or '' end)"
    )
    nvim.wait_lua("return _G.done")
    assert nvim.lua("return _G.problem") == ""
    made = environment(nvim)
    assert made is not None
    assert made["fresh"]
    calls = (tmp_path / "calls").read_text()
    assert [Path(name).name for name in re.findall(r"-r (\S+)", calls)] == [
        "requirements.lock",
        "requirements-semantic.lock",
    ]
    assert install(nvim) == ""
    assert (tmp_path / "calls").read_text().count("requirements-semantic.lock") == 2


def test_an_extra_that_cannot_be_installed_changes_nothing(start: Callable[..., Nvim]) -> None:
    """onnxruntime is not built for every system; the environment stays, and later environments keep their packages."""
    nvim = start()
    assert install(nvim) == ""
    before = environment(nvim)
    nvim.lua("vim.env.FAKE_FAIL, vim.env.FAKE_OUTPUT = 'pip', 'ERROR: No matching distribution found for onnxruntime'")
    nvim.lua(
        "_G.done = false; install.add('semantic', function(problem) _G.done, _G.problem = true, problem or '' end)"
    )
    nvim.wait_lua("return _G.done")
    assert "not for this system" in str(nvim.lua("return _G.problem"))
    after = environment(nvim)
    assert before is not None
    assert after is not None
    assert (after["dir"], after["fresh"]) == (before["dir"], True)


def test_two_extras_are_installed_together(start: Callable[..., Nvim], tmp_path: Path) -> None:
    """`:CodeCompanion install mcp` after `:CodeCompanion install semantic` removes nothing."""
    nvim = start()
    for extra in ("semantic", "sdk", "mcp"):
        nvim.lua(f"_G.done = false; install.add('{extra}', function(problem) _G.done, _G.problem = true, problem end)")
        nvim.wait_lua("return _G.done")
        assert nvim.lua("return _G.problem") is None
    names = [Path(name).name for name in re.findall(r"-r (\S+)", (tmp_path / "calls").read_text())]
    assert names == [
        "requirements-semantic.lock",
        "requirements-semantic-sdk.lock",
        "requirements-semantic-mcp-sdk.lock",
    ]


ADD_AND_ASK = """
local setup = ...
require('codecompanion').setup(setup)
_G.done = false
install.resolve(function(problem) _G.done, _G.problem = true, problem end, function() return true end)
"""


@pytest.mark.parametrize(
    ("setup", "lock"),
    [
        ("{}", "requirements.lock"),
        ("{ adapters = { http = { openai = { opts = { max_retries = 1 } } } } }", "requirements.lock"),
        ("{ adapters = { http = { openai = { opts = { transport = 'sdk' } } } } }", "requirements-sdk.lock"),
        ("{ interactions = { chat = { adapter = 'bedrock' } } }", "requirements-sdk.lock"),
    ],
)
def test_an_official_client_is_installed_if_an_adapter_needs_it(
    start: Callable[..., Nvim], tmp_path: Path, setup: str, lock: str
) -> None:
    """It is installed with the host, like the packages for MCP servers; an unconfigured adapter adds nothing."""
    nvim = start()
    nvim.lua(ADD_AND_ASK.replace("local setup = ...", f"local setup = {setup}"))
    nvim.wait_lua("return _G.done")
    assert nvim.lua("return _G.problem") is None
    assert [Path(name).name for name in re.findall(r"-r (\S+)", (tmp_path / "calls").read_text())] == [lock]


def test_a_page_that_waits_shows_the_installation_and_its_reason(start: Callable[..., Nvim]) -> None:
    """One line of configuration can cause a reinstallation; the page then says so instead of “starting”."""
    nvim = start()
    nvim.lua("require('codecompanion').setup({ mcp = { servers = { adder = { cmd = { 'adder' } } } } })")
    claim = Path(nvim.lua("return install.data_dir()"), "installing")
    claim.parent.mkdir(parents=True, exist_ok=True)
    claim.write_text(f"{os.getpid()}\n25 of 56 downloaded")
    nvim.command("CodeCompanion memory")
    nvim.wait_screen("Another Neovim is installing Python packages: 25 of 56 downloaded")
    nvim.wait_screen("Your MCP servers need more Python packages")
    claim.write_text(f"{os.getpid()}\n26 of 56 downloaded")
    nvim.wait_screen("26 of 56 downloaded")
    assert "the Python process is starting" not in nvim.screen()
    nvim.feed("q")
    nvim.command("CodeCompanionChat")
    nvim.wait_screen("Messages you send now are queued")
    nvim.command("close")
    claim.write_text(f"{os.getpid()}\n27 of 56 downloaded")
    nvim.wait_lua("return install.progress.text:find('27', 1, true) ~= nil")
    assert not nvim.blocked()
