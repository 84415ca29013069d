"""The file with the bytecode of a host's modules: faster if it is valid, and never a way to run other code."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest

from codecompanion.engine import module_cache
from codecompanion.engine.idle_work import keep_modules
from codecompanion.engine.module_cache import SUFFIX, ModuleCache
from codecompanion.engine.module_cache_writer import KEPT_FILES, write_module_cache
from tests.patience import PATIENCE_S

REPO = Path(__file__).resolve().parents[3]
NAMES = ("shop", "shop.price", "shop.goods")
HOST = """
import json, os, signal, sys
compiled = []
sys.addaudithook(lambda event, about: event == "compile" and compiled.append(str(about[1])))
from codecompanion.engine.module_cache import CachedLoader, module_cache, use_module_cache

def facts(name):
    __import__(name)
    module = sys.modules[name]
    spec = module.__spec__
    return {
        "value": module.VALUE, "is_cached": type(spec.loader) is CachedLoader,
        "place": [module.__file__, module.__cached__, module.__package__, spec.origin, spec.has_location],
        "folder": [*getattr(module, "__path__", ())], "compiled": sum("shop" in name for name in compiled),
    }

folder, what, *names = sys.argv[1:]
use_module_cache(folder)
found = {name: facts(name) for name in names}
if what != "only read":
    from codecompanion.engine.module_cache_writer import write_module_cache
    from pathlib import Path

    if what == "be killed":
        Path.replace = lambda draft, target: os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(20 if what == "write often" else 1):
        write_module_cache(module_cache())
print(json.dumps(found))
"""


class Shop:
    """A small program in a folder, and a folder for its bytecode."""

    def __init__(self, root: Path) -> None:
        self.root, self.kept = root, root / "kept"
        for name, value in (("__init__", 1), ("price", 2), ("goods", 3)):
            self.write(name, value)

    def write(self, name: str, value: object, folder: str = "program") -> Path:
        """Write one module of the program."""
        source = self.root / folder / "shop" / f"{name}.py"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"VALUE = {value!r}\n")
        return source

    def begin(self, *arguments: str, what: str = "", folder: str = "program", names: tuple[str, ...] = NAMES):
        """Start Python, which imports the modules and then writes the file; return the process."""
        environment = {"PYTHONPATH": f"{self.root / folder}:{REPO / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *arguments, "-c", HOST, str(self.kept), what, *names]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def run(self, *arguments: str, what: str = "", folder: str = "program", names: tuple[str, ...] = NAMES):
        """Start Python as `begin` does, wait for it, and return the imported modules."""
        started = self.begin(*arguments, what=what, folder=folder, names=names)
        out, err = started.communicate(timeout=PATIENCE_S)
        assert started.returncode == 0, err
        return json.loads(out)

    def files(self) -> list[Path]:
        """Return the bytecode files."""
        return sorted(self.kept.glob(f"*{SUFFIX}"))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def values(found: dict[str, dict[str, object]]) -> list[object]:
    return [found[name]["value"] for name in found]


def cached(found: dict[str, dict[str, object]]) -> list[str]:
    return [name for name in found if found[name]["is_cached"]]


def test_the_next_start_imports_the_same_from_the_file(shop: Shop) -> None:
    """All module attributes are the same as without the file."""
    first, second = shop.run(), shop.run()
    assert (cached(first), cached(second)) == ([], [*NAMES])
    same = ("value", "place", "folder")
    assert [{key: second[name][key] for key in same} for name in NAMES] == [
        {key: first[name][key] for key in same} for name in NAMES
    ]


def test_a_plugin_with_a_read_only_folder_is_compiled_once(shop: Shop) -> None:
    """Without the file every start would compile every module."""
    assert [shop.run()["shop.goods"]["compiled"] for _ in range(3)] == [len(NAMES), 0, 0]


def test_a_changed_source_of_the_same_size_is_recompiled_and_stored(shop: Shop) -> None:
    """This is the case after `git pull`, for example."""
    shop.run()
    source = shop.write("price", 7)
    os.utime(source, ns=(0, source.stat().st_mtime_ns + 1))
    found = [shop.run() for _ in range(2)]
    assert [values(one) for one in found] == [[1, 7, 3], [1, 7, 3]]
    assert [cached(one) for one in found] == [["shop", "shop.goods"], [*NAMES]]


def test_a_deleted_module_or_one_turned_into_a_package_is_not_taken_from_the_file(shop: Shop) -> None:
    """Its old byte code is still in the file."""
    shop.run()
    shop.write("price", 2).unlink()
    started = shop.begin()
    assert "No module named 'shop.price'" in started.communicate(timeout=PATIENCE_S)[1]
    shop.write("price/__init__", 8)
    assert values(shop.run()) == [1, 8, 3]
    assert cached(shop.run()) == [*NAMES]


def test_modules_imported_by_another_chat_stay_in_the_file(shop: Shop) -> None:
    """Otherwise two kinds of chats would replace each other's file forever."""
    shop.run(names=("shop", "shop.price"))
    shop.run(names=("shop", "shop.goods"))
    written = shop.files()[0].stat().st_mtime_ns
    assert cached(shop.run()) == [*NAMES]
    assert shop.files()[0].stat().st_mtime_ns == written


def test_another_python_and_a_moved_plugin_have_their_own_files(shop: Shop) -> None:
    """Code disabled by -O is missing from the bytecode, so there is a second file; the first stays valid."""
    shop.run()
    assert cached(shop.run("-O")) == []
    shutil.copytree(shop.root / "program", shop.root / "moved")
    shop.write("price", 9, "moved")
    assert values(shop.run(folder="moved")) == [1, 9, 3]
    assert len(shop.files()) == 3
    assert [values(shop.run()), values(shop.run("-O")), values(shop.run(folder="moved"))] == [
        [1, 2, 3], [1, 2, 3], [1, 9, 3]
    ]  # fmt: skip
    assert cached(shop.run(folder="moved")) == cached(shop.run("-O")) == cached(shop.run()) == [*NAMES]


def test_a_file_of_another_python_under_our_name_is_not_read(shop: Shop) -> None:
    """Its marshalled code may mean something else."""
    shop.run()
    (ours,) = shop.files()
    shop.run("-O")
    (other,) = set(shop.files()) - {ours}
    shutil.copyfile(other, ours)
    found = shop.run()
    assert (values(found), cached(found)) == ([1, 2, 3], [])
    assert cached(shop.run()) == [*NAMES]


def test_only_the_newest_files_stay(shop: Shop) -> None:
    """Each location of the plugin adds a file."""
    for number in range(KEPT_FILES + 2):
        shop.write("__init__", number, f"copy{number}")
        shop.run(folder=f"copy{number}", names=("shop",))
    assert len(shop.files()) == KEPT_FILES
    assert cached(shop.run(folder=f"copy{KEPT_FILES + 1}", names=("shop",))) == ["shop"]


def test_hosts_writing_at_once_leave_one_complete_file(shop: Shop) -> None:
    """Each host replaces the file atomically."""
    started = [shop.begin(what="write often") for _ in range(4)]
    for one in started:
        assert (one.communicate(timeout=PATIENCE_S)[1], one.returncode) == ("", 0)
    assert [file.name for file in shop.kept.iterdir()] == [file.name for file in shop.files()]
    assert cached(shop.run(what="only read")) == [*NAMES]


def test_a_host_killed_while_writing_leaves_the_old_file(shop: Shop) -> None:
    """A temporary file is left as well, which a later host removes."""
    shop.run(names=("shop",))
    killed = shop.begin(what="be killed")
    killed.communicate(timeout=PATIENCE_S)
    assert killed.returncode == -signal.SIGKILL
    (draft,) = set(shop.kept.iterdir()) - set(shop.files())
    assert cached(shop.run(what="only read")) == ["shop"]
    os.utime(draft, (0, 0))
    assert cached(shop.run()) == ["shop"]
    assert list(shop.kept.iterdir()) == shop.files()


def test_a_file_writable_by_others_is_not_used(shop: Shop) -> None:
    """They could run code as the user."""
    shop.run()
    (file,) = shop.files()
    for path, mode in ((file, 0o620), (file, 0o602), (shop.kept, 0o770), (shop.kept, 0o707)):
        before = path.stat().st_mode
        path.chmod(mode)
        found = shop.run(what="only read")
        assert (values(found), cached(found)) == ([1, 2, 3], [])
        path.chmod(before)
    assert cached(shop.run(what="only read")) == [*NAMES]
    elsewhere = file.rename(shop.root / "elsewhere")
    file.symlink_to(elsewhere)
    assert cached(shop.run(what="only read")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_not_used(shop: Shop) -> None:
    """Its owner can change it."""
    shop.run()
    (file,) = shop.files()
    os.chown(file, 12345, -1)
    assert cached(shop.run(what="only read")) == []


def test_an_unwritable_folder_is_not_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The health check gives the reason for the missing file."""
    (tmp_path / "file").write_text("")
    cache = ModuleCache(str(tmp_path / "file" / "kept"))
    cache.open()
    monkeypatch.setattr(sys, "meta_path", [cache, *sys.meta_path])
    monkeypatch.setattr(sys, "modules", {"json": json})
    monkeypatch.setattr(module_cache, "fits", lambda entry: True)
    keep_modules()
    assert cache.why_not == "cannot be written (Not a directory)"


def code_of(text: str) -> CodeType:
    return compile(text, "source.py", "exec")


CODES = {"one": code_of("VALUE = 1\n"), "two": code_of("def two(): return 'two'\n"), "three": code_of("VALUE = [3]\n")}


def small_file(folder: Path) -> ModuleCache:
    """Return a cache whose file has three modules in two parts."""
    folder.mkdir(mode=0o700)
    source = folder / "source.py"
    source.write_text("")
    found = source.stat()
    facts = (str(source), f"{source}c", found.st_mtime_ns, found.st_size)
    parts = [marshal.dumps({name: CODES[name] for name in names}) for names in (("one", "two"), ("three",))]
    cache = ModuleCache(str(folder))
    Path(cache.path).write_bytes(cache.encode(parts, {"one": (0, *facts), "two": (0, *facts), "three": (1, *facts)}))
    return cache


def taken(folder: Path) -> dict[str, CodeType | None]:
    """Return the code that a start would run."""
    cache = ModuleCache(str(folder))
    cache.open()
    found = {name: cache.take_code(name) for name in CODES if cache.find_spec(name)}
    cache.close("read")
    return found


def test_a_truncated_file_is_not_used(tmp_path: Path) -> None:
    """A full disk or a power cut may truncate it."""
    file = Path(small_file(tmp_path / "kept").path)
    whole = file.read_bytes()
    assert taken(tmp_path / "kept") == CODES
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        assert taken(tmp_path / "kept") == {}
    file.write_bytes(whole + b"\0")
    assert taken(tmp_path / "kept") == {}


def test_a_changed_byte_never_changes_the_code_that_runs(tmp_path: Path) -> None:
    """A part with a wrong hash is not unmarshalled: that could crash Python."""
    file = Path(small_file(tmp_path / "kept").path)
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        found = taken(tmp_path / "kept")
        assert [name for name, code in found.items() if code not in (None, CODES[name])] == []
        assert len(found) < len(CODES) or None in found.values()


def test_unreadable_code_is_imported_by_python(shop: Shop) -> None:
    """The file may be damaged after its tables have been read."""
    shop.run()
    (file,) = shop.files()
    content = file.read_bytes()
    file.write_bytes(content[:-20] + bytes(20))
    assert values(shop.run(what="only read")) == [1, 2, 3]


def test_a_module_from_outside_the_search_path_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own strategy may have any name."""
    cache = ModuleCache(str(tmp_path / "kept"))
    source = tmp_path / "json.py"
    source.write_text("VALUE = 'not the standard library'\n")
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("json", source)
    assert spec is not None
    monkeypatch.setattr(sys, "modules", {"json": module_from_spec(spec)})
    assert not write_module_cache(cache)
    assert not (tmp_path / "kept").exists()


def test_a_reload_is_left_to_python(tmp_path: Path) -> None:
    """It reads the source again, whatever its modification time."""
    cache = small_file(tmp_path / "kept")
    cache.open()
    name = next(iter(CODES))
    assert cache.find_spec(name) is not None
    assert cache.find_spec(name, None, json) is None
    cache.close("read")
