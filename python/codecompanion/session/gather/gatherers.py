"""The gatherers: each returns snippets or raises; the caller enforces deadlines (R-201, R-213 … R-242).

Blocking functions take `check`, which raises when the result is no longer needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from codecompanion.formats.text_files import decode, read_bytes
from codecompanion.memory.entries import MAX_FILE_CHARS, parse_memories
from codecompanion.memory.labelled_text import render_memories
from codecompanion.model.found_code import COMMON, FoundCode
from codecompanion.model.gathered import GatherSource, Snippet
from codecompanion.retrieval.architecture import describe_architecture, manifests_of
from codecompanion.retrieval.elements import Element, as_snippet, best_elements, find_elements_with
from codecompanion.retrieval.relevance import MAX_SCORE, MIN_SCORE
from codecompanion.retrieval.search.common_files import CUT, NAMES, common_files, cut_common
from codecompanion.retrieval.smart_snippets import extract_smart_snippets, split_lines
from codecompanion.session.gather.project_code import CodeTexts, ProjectCode
from codecompanion.settings_sections import GatheredMemorySettings
from codecompanion.workspace.paths import Workspace
from codecompanion.workspace.secret_text import hide_secrets
from codecompanion.workspace.syntax.languages import language_of

Check = Callable[[], None]
MayUse = Callable[[Path, Path, bytes, bool], bool]
"""A function `(root, path, content, runs)` that returns whether a project file may be used; `runs`: whether it would be
executed.
"""


def use_all(root: Path, path: Path, content: bytes, runs: bool) -> bool:
    """Allow every file, because on the command line the user named the folder for this question."""
    del root, path, content, runs
    return True


MAX_TEXT_SNIPPETS = 3
"""Maximum number of snippets from a file without a grammar."""
MAX_COMMON = 6
_MAX_MEMORY_BYTES = 4 * MAX_FILE_CHARS


def search_definitions(
    code: CodeTexts,
    terms: Sequence[str],
    paths: Sequence[str],
    check: Check,
    is_late: Callable[[], bool] = lambda: False,
) -> list[Snippet]:
    """Return the elements that best match the terms (R-222 … R-224); in files without a grammar, patterns find them.

    Once `is_late` returns true, no further file is read: partial results are better than none.
    """
    elements, texts = list[Element](), list[Snippet]()
    for place, path in enumerate(paths):
        check()
        if place and is_late():
            break
        text = code.read(path)
        if text is None:
            continue
        parsed = code.parse(path)
        if parsed.definitions:
            elements += find_elements_with(path, text, parsed, terms)
        else:
            found = sorted(extract_smart_snippets(path, text, terms), key=lambda one: -one.score)
            texts += [_as_ast(one) for one in found[:MAX_TEXT_SNIPPETS]]
    return [*map(as_snippet, best_elements(elements)), *texts]


def beside_search(snippets: Sequence[Snippet], weight: float) -> list[Snippet]:
    """Return the elements with scores weighted relative to those of index results."""
    return [msgspec.structs.replace(one, score=MIN_SCORE + (one.score - MIN_SCORE) * weight) for one in snippets]


def _as_ast(snippet: Snippet) -> Snippet:
    return Snippet(
        path=snippet.path,
        start=snippet.start,
        end=snippet.end,
        text=snippet.text,
        kind=snippet.kind,
        name=snippet.name,
        score=snippet.score,
        source="ast",
        scores=(("density", round(snippet.score, 3)),),
    )


def found_snippet(found: FoundCode) -> Snippet:
    """Return a search result as a snippet; its score is mapped to 0.1..0.9."""
    if found.method.endswith(COMMON):
        return _common_snippet(found.path, found.text)
    name = found.symbol.rpartition(".")[2]
    return Snippet(
        path=found.path,
        start=found.start,
        end=found.end,
        text=found.text,
        kind=found.kind,
        name=name,
        score=MIN_SCORE + (MAX_SCORE - MIN_SCORE) * max(0.0, min(1.0, found.score)),
        source="search",
        scores=(("search", round(found.score, 3)), *((name, round(part, 3)) for name, part in found.signals)),
    )


def read_common_files(code: ProjectCode, every_manifest: bool, check: Check) -> list[Snippet]:
    """Return the README, manifests and entry points (`common_files`, R-236), for use without an index."""
    found = list[Snippet]()
    for path in common_files(code.listed(check), every_manifest=every_manifest)[:MAX_COMMON]:
        check()
        text = code.read(path)
        if text and text.strip():
            found.append(_common_snippet(path, cut_common(text)))
    return found


def _common_snippet(path: str, text: str) -> Snippet:
    """Return a common file as a snippet with the lowest score, so that it comes after the search results (R-236)."""
    return Snippet(
        path=path,
        start=1,
        end=len(split_lines(text)),
        text=text,
        kind="file",
        score=MIN_SCORE,
        is_cut=text.endswith(CUT),
        source="common",
        scores=(("common", MIN_SCORE),),
    )


def read_architecture(code: ProjectCode, check: Check) -> list[Snippet]:
    """Return a description of the project's structure as one string (R-240)."""
    paths = code.listed(check)
    manifests = {path: text for path in manifests_of(paths) if (text := code.read(path)) is not None}
    languages = Counter(filter(None, map(language_of, paths)))
    entry_points = [path for path in common_files(paths) if path not in NAMES]
    text = describe_architecture(paths, manifests, languages, entry_points)
    return [beside("architecture", text)] if text else []


def read_memories(code: ProjectCode, settings: GatheredMemorySettings, may_use: MayUse, check: Check) -> list[Snippet]:
    """Return the memories of the user and the project as one string (R-241, R-242); missing files are ignored.

    The project's memories are used only if their file is trusted.
    """
    users, projects = Path(settings.user).expanduser(), _below(code.root, settings.project)
    is_trusted = lambda content: may_use(code.root, projects, content, False)  # noqa: E731
    memories = (
        *parse_memories(_read_optional(users), "user"),
        *parse_memories(_read_optional(projects, is_trusted), "project"),
    )
    check()
    text = render_memories(memories)
    return [beside("memory", text)] if text else []


def beside(source: GatherSource, text: str) -> Snippet:
    """Return text that is not from a file as a snippet; secrets are hidden, because the user did not choose it."""
    shown = hide_secrets(text)
    return Snippet(path="", start=0, end=0, text=shown, kind=source, source=source, score=MAX_SCORE)


def _below(root: Path, path: str) -> Path:
    """Return the path of a project file with links resolved; a path outside the project is an error (R-266)."""
    return Workspace(root).resolve(path)


def _read_optional(path: Path, may_use: Callable[[bytes], bool] = lambda content: True) -> str:
    if not path.is_file():
        return ""
    content = read_bytes(Path(path).resolve(), _MAX_MEMORY_BYTES)
    return decode(content).text if may_use(content) else ""
