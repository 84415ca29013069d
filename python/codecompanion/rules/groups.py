"""Loads rules: groups of files whose text is sent to the model and survives every compaction (R-549).

The session creates one message per `RulesItem`: role user, tag `rules`, the item's path, text `rules_text(path, text)`.
A file is included only once, even if several entries, links and includes lead to it. Unreadable files are reported; all
others are loaded. The text of a rule file is passed on unchanged; only `@path` is interpreted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats import text_files
from codecompanion.rules.find_rule_files import Found, Missing, Problem, find_files, find_include
from codecompanion.rules.parsers import find_includes
from codecompanion.settings_sections import RuleGroup, RulesSettings

MAX_INCLUDE_DEPTH = 5
"""Maximum depth of includes, the same as in Claude Code."""

MAX_RULE_BYTES = 1_000_000


class RulesItem(msgspec.Struct, frozen=True):
    """A rule file as it was read. `path` is its label, `real` its path; the other fields are used to detect changes.

    `of_folder`: the file is in the workspace, or linked from it (`find_rule_files.Found`).
    """

    path: str
    text: str
    real: str
    mtime_ns: int
    size_bytes: int
    sha256: str
    of_folder: bool = False


MayRead = Callable[[RulesItem], bool]
"""A function that returns whether a file of the workspace may join the chat."""


def read_all(item: RulesItem) -> bool:
    """Allow every file, because the user asked for the group or no file joins a chat."""
    del item
    return True


class RulesLoaded(msgspec.Struct, frozen=True):
    """The files of one or more groups in order, messages about unread files, and entries without a matching file.

    `held_back` are files of the workspace that may not join the chat yet; their includes are not followed.
    """

    items: tuple[RulesItem, ...] = ()
    problems: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    held_back: tuple[RulesItem, ...] = ()


def rules_text(path: str, content: str) -> str:
    """Return the message text for a rule file."""
    label = path.replace('"', "&quot;")
    return f'<rules path="{label}">\n{content.rstrip()}\n</rules>'


def autoload(settings: RulesSettings, root: Path, may_read: MayRead = read_all) -> RulesLoaded:
    """Load the rules that every new chat starts with."""
    if not settings.enabled:
        return RulesLoaded()
    loaded = RulesLoaded()
    for name in settings.autoload:
        more = load_named(settings, name, root, frozenset(item.real for item in loaded.items), may_read)
        loaded = RulesLoaded(
            loaded.items + more.items,
            loaded.problems + more.problems,
            loaded.missing + more.missing,
            loaded.held_back + more.held_back,
        )
    return loaded


def load_named(
    settings: RulesSettings, name: str, root: Path, already: Collection[str] = (), may_read: MayRead = read_all
) -> RulesLoaded:
    """Load the rules of a configured group; for an unknown name, report a problem that suggests the nearest name."""
    group = settings.groups.get(name)
    if group is None:
        nearest = get_close_matches(name, settings.groups, n=1)
        known = ", ".join(settings.groups) or "none"
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"the groups are: {known}."
        return RulesLoaded(problems=(f"There is no rule group named {name!r}; {hint}",))
    return load_group(group, root, already, may_read)


def load_group(
    group: RuleGroup, root: Path, already: Collection[str] = (), may_read: MayRead = read_all
) -> RulesLoaded:
    """Read the files of a group. `already`: the real paths of files that are already in the chat.

    This function blocks, so the session calls it in a thread.
    """
    reading = _Reading(root, set(already), may_read)
    for entry in group.files:
        for found in find_files(entry, root):
            reading.add(found, depth=0)
    problems = tuple(dict.fromkeys(reading.problems))
    return RulesLoaded(tuple(reading.items), problems, tuple(reading.missing), tuple(reading.held_back))


def reread(items: Iterable[RulesItem]) -> RulesLoaded:
    """Return the items whose files have changed, with their new text.

    Time and size are checked first, then the content: a file that was only touched has not changed. A file that is no
    longer readable is reported as a problem, and its text stays in the chat.
    """
    changed, problems = [], []
    for item in items:
        path = Path(item.real)
        try:
            status = path.stat()
            if (status.st_mtime_ns, status.st_size) == (item.mtime_ns, item.size_bytes):
                continue
            now = _read(path, item.path, of_folder=item.of_folder)
        except (CodeCompanionError, OSError) as error:
            problems.append(f"Rules {item.path}: {_cause(error)} The chat keeps the earlier version.")
            continue
        if now.sha256 != item.sha256:
            changed.append(now)
    return RulesLoaded(tuple(changed), tuple(problems))


class _Reading:
    """Collects files in order, each once."""

    def __init__(self, root: Path, seen: set[str], may_read: MayRead) -> None:
        self._root, self._may_read = root, may_read
        self._seen = seen
        self.items: list[RulesItem] = []
        self.problems: list[str] = []
        self.missing: list[str] = []
        self.held_back: list[RulesItem] = []

    def add(self, found: Found | Problem | Missing, depth: int) -> None:
        """Add a file and, if its parser follows includes, the files that it includes.

        Record a problem or a missing file.
        """
        if isinstance(found, Problem):
            self.problems.append(found.text)
        elif isinstance(found, Missing):
            self.missing.append(found.path)
        elif str(found.real) not in self._seen:
            self._seen.add(str(found.real))
            try:
                item = _read(found.real, found.label, of_folder=found.of_folder)
            except (CodeCompanionError, OSError) as error:
                self.problems.append(f"Rules {found.label} were not read: {_cause(error)}")
                return
            if found.of_folder and not self._may_read(item):
                self.held_back.append(item)
                return
            self.items.append(item)
            if found.follows_includes:
                self._add_includes(item, found, depth)

    def _add_includes(self, item: RulesItem, source: Found, depth: int) -> None:
        for include in find_includes(item.text):
            found = find_include(include, source, self._root)
            if isinstance(found, Found) and depth == MAX_INCLUDE_DEPTH and str(found.real) not in self._seen:
                self.problems.append(
                    f"Rules {item.path}: @{include.spellings[0]} was not read:"
                    f" more than {MAX_INCLUDE_DEPTH} levels deep."
                )
            elif found is not None:
                self.add(found, depth + 1)


def _read(path: Path, label: str, *, of_folder: bool) -> RulesItem:
    status = path.stat()
    content = text_files.read_bytes(path, MAX_RULE_BYTES)
    if text_files.is_binary(content):
        raise text_files.UnreadableFile(f"{path} is a binary file of {len(content):,} bytes.")
    text = text_files.printable(text_files.decode(content).text)
    sha256 = hashlib.sha256(content).hexdigest()
    return RulesItem(label, text, str(path), status.st_mtime_ns, status.st_size, sha256, of_folder)


def _cause(error: Exception) -> str:
    text = str(error) if isinstance(error, CodeCompanionError) else text_files.reason(error) + "."
    return text
