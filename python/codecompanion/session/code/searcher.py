"""Searches one project: reads the index, ranks the results, and fetches their text (R-227 … R-238).

The search works with the sources available: a complete, partial or missing index, with or without git and vectors. Text
is read from the file, or from its unsaved buffer, at the time of the search.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from codecompanion.errors import StoreUnavailable
from codecompanion.formats.word_rarity import rarity
from codecompanion.model.found_code import FoundCode, SearchOutcome, SearchTier
from codecompanion.retrieval.distinctive_words import LOOKED_AT, Rarity, same_rarity, wants_common
from codecompanion.retrieval.ranking.evidence import ChunkHit, DefinitionHit, Evidence
from codecompanion.retrieval.ranking.join import RankedFile, find_seeds, rank_files
from codecompanion.retrieval.ranking.places import Place, best_places
from codecompanion.retrieval.ranking.question import Question, asking_words, read_question, spellings
from codecompanion.retrieval.ranking.tables import Ranking, ranking
from codecompanion.retrieval.search.cascade import run_cascade, tiers_from
from codecompanion.retrieval.search.results import one_per_file
from codecompanion.session.code.document_tiers import DocumentTiers
from codecompanion.session.code.found_places import FoundPlaces
from codecompanion.session.code.project_words import ProjectWords
from codecompanion.session.code.search_options import MAX_TOP_K, NearestChunks, SearchOptions
from codecompanion.session.code.searched_project import SearchedProject
from codecompanion.session.code.text_hits import MAX_FILES, search_texts
from codecompanion.store.code_index import search
from codecompanion.store.code_index.word_search import find_any

HISTORY_CHECKED_EVERY_S = 10.0
MAX_NEAREST = 400
"""Number of nearest chunks requested from the vector search."""
MAX_DEFINING_FILES = 2
MAX_PLACES = 300
"""Maximum number of locations whose text is read; more than fit into the largest budget (R-244)."""
_FIRST_LINES = 40
_WITHOUT_WORDS = 0.1
"""The weight of a file's beginning, relative to locations that contain words of the question."""


class CodeSearcher:
    """Searches one project; the state it keeps between questions follows the index and HEAD."""

    def __init__(self, project: SearchedProject, weights: Ranking | None = None) -> None:
        self.project = project
        self.ranking = weights or ranking()
        self.words = ProjectWords()
        self.not_indexed: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._head, self._head_read = "", float("-inf")

    def search(self, text: str, options: SearchOptions, nearest: NearestChunks | None = None) -> SearchOutcome:
        """Return the best locations in the project for a question. Blocks: run it in a thread.

        Any source may be missing; without any source the results are empty.
        """
        started = time.perf_counter()
        try:
            outcome = self._answer(text, options, nearest, [])
        except StoreUnavailable as error:  # the index opened, but a part of it could not be read
            outcome = self._answer(text, options, nearest, [f"index: {error}"], with_index=False)
        return msgspec.structs.replace(outcome, ms=(time.perf_counter() - started) * 1000)

    def _answer(
        self,
        text: str,
        options: SearchOptions,
        nearest: NearestChunks | None,
        not_used: list[str],
        *,
        with_index: bool = True,
    ) -> SearchOutcome:
        with self.opened(not_used, with_index=with_index) as connection:
            not_indexed = self.not_indexed
            answer = self._joined if options.tier == "auto" else self._by_document
            tier, results = answer(connection, text, options, nearest, not_used)
            if options.with_common and self._wants_common(connection, text, options, results):
                paths = (path for path in self.words.all_paths() if is_below(path, options.below))
                common = FoundPlaces(self.project).common(tier, paths, every_manifest=options.every_manifest)
                results = (*results, *common)
        most = options.most
        if options.tier == "auto":
            most = max(most, options.top_k) * max(options.per_file, 1)
        if options.per_file == 1:
            results = one_per_file(results, most)
        return SearchOutcome(results[:most], tier, 0.0, bool(not_indexed), tuple(not_used))

    def _wants_common(
        self,
        connection: sqlite3.Connection | None,
        text: str,
        options: SearchOptions,
        results: Sequence[FoundCode],
    ) -> bool:
        """Return whether to append common project files to these results (R-236)."""
        return wants_common(
            text,
            [f"{one.path} {one.symbol} {one.text}" for one in results[:LOOKED_AT]],
            is_about_whole=options.is_broad,
            beside_hits=options.beside_hits,
            weight=lambda: self._rarity(connection),
        )

    def _rarity(self, connection: sqlite3.Connection | None) -> Rarity:
        if connection is None:
            return same_rarity
        counts, chunks = self.words.word_counts, self.words.word_counts.chunks(connection)
        return lambda word: rarity(counts.chunks_with(connection, word), chunks)

    def names_here(self, connection: sqlite3.Connection | None, text: str) -> frozenset[str]:
        """Return otherwise ignored words of a question that name files or definitions in this project.

        A name that many files define is excluded, because it is as vague as the plain word.
        """
        asking = asking_words(text)
        found = self.words.file_names.intersection(asking)
        if connection is None or not asking:
            return found
        files: dict[str, set[int]] = {}
        for row in search.find_definitions(connection, [form for word in asking for form in spellings(word)]):
            files.setdefault(row.name.lower(), set()).add(row.file)
        return found.union(name for name, of in files.items() if len(of) <= MAX_DEFINING_FILES and name in asking)

    def evidence(
        self,
        connection: sqlite3.Connection | None,
        question: Question,
        options: SearchOptions,
        nearest: NearestChunks | None,
    ) -> Evidence:
        """Return all evidence for a question; also used to fit the weights."""
        self._follow_history()
        path_words = self.words.path_words
        indexed = self._chunk_hits(connection, question, options, nearest) if connection else ()
        unknown = self._text_hits(question, options) if self.not_indexed else ()
        evidence = Evidence(
            chunks=(*indexed, *unknown),
            definitions=self._definitions(connection, question, options) if connection else (),
            paths=self._known(path_words.score(question.stems), options),
            prefixes=self._known(path_words.score_prefixes(question.stems), options),
            subjects=self._known(self.words.subjects.score(question.stems), options),
            commits=self._known(self.words.commits.score(question.stems), options),
            recency=self._known(self.words.recency, options),
            edits=self.words.edits.like(question.stems) if options.per_file > 1 else {},
            in_play=tuple(path for path in options.in_play if path in path_words),
        )
        if connection is None:
            return evidence
        seeds = find_seeds(question, evidence, self.ranking)
        edges = self.words.edges(connection, seeds)
        if options.below:
            edges = {
                user: kept
                for user, others in edges.items()
                if is_below(user, options.below)
                and (kept := {other: weight for other, weight in others.items() if is_below(other, options.below)})
            }
        return msgspec.structs.replace(evidence, edges=edges, seeds=seeds)

    @contextlib.contextmanager
    def opened(self, not_used: list[str], *, with_index: bool = True) -> Iterator[sqlite3.Connection | None]:
        """Yield the index connection, or None if the index cannot be read; the reason is added to `not_used`.

        Raises:
            StoreUnavailable: the `with` block read a damaged part of the index.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._lock)
            self.not_indexed = tuple(self.project.not_indexed())
            self.words.follow_listing(self.not_indexed)
            connection = None
            try:
                if with_index:
                    connection = stack.enter_context(self.project.reader.reading())
                    self.words.follow_index(connection)
            except FileNotFoundError:
                not_used.append("index: the project is not indexed yet")
            except StoreUnavailable as error:
                not_used.append(f"index: {error}")
            if connection is None:
                # Files from the lost index are searched as text.
                self.not_indexed = tuple(dict.fromkeys((*self.not_indexed, *self.words.ids)))
                self.words.forget_index()
                self.words.follow_listing(self.not_indexed)
            yield connection

    def _joined(
        self,
        connection: sqlite3.Connection | None,
        text: str,
        options: SearchOptions,
        nearest: NearestChunks | None,
        not_used: list[str],
    ) -> tuple[SearchTier, tuple[FoundCode, ...]]:
        """Return the results ranked by all signals, and the best of the document's tiers used for them (R-238)."""
        question = read_question(text, self.names_here(connection, text))
        if not question.words and not question.names:
            return "terms", ()
        evidence = self.evidence(connection, question, options, self._guarded(nearest, not_used))
        if not evidence.is_about_it:
            not_used.append("search: nothing found")
            return ("fts" if connection else "terms"), ()
        by_meaning = any(hit.cosine is not None for hit in evidence.chunks)
        tier: SearchTier = "hybrid" if by_meaning else "fts" if connection else "terms"
        files = rank_files(question, evidence, self.ranking, min(options.top_k, MAX_TOP_K))
        edited = self._edited_chunks(connection, files, evidence) if connection else ()
        chunks = (*evidence.chunks, *edited)
        places = best_places(question, files, chunks, evidence.definitions, options.per_file, evidence.edits)
        with_place = {place.path for place in places}
        share = 1.0 if options.per_file == 1 else _WITHOUT_WORDS
        rest = (self._first_place(connection, ranked, share) for ranked in files if ranked.path not in with_place)
        order = {ranked.path: rank for rank, ranked in enumerate(files)}
        every = [*places, *(place for place in rest if place)]
        every.sort(key=lambda place: (-place.score, order[place.path]))
        del every[MAX_PLACES:]
        signals = {ranked.path: ranked.signals for ranked in files}
        texts, as_text = FoundPlaces(self.project), frozenset(self.not_indexed)
        found = (texts.found(place, "terms" if place.path in as_text else tier, signals[place.path]) for place in every)
        return tier, tuple(result for result in found if result is not None)

    def _guarded(self, nearest: NearestChunks | None, not_used: list[str]) -> NearestChunks | None:
        if nearest is None:
            return None

        def ask(limit: int) -> dict[int, float]:
            try:
                return dict(nearest(limit))
            except Exception as error:  # the search continues without vectors
                not_used.append(f"vectors: {str(error) or type(error).__name__}")
                return {}

        return ask

    def _by_document(
        self,
        connection: sqlite3.Connection | None,
        text: str,
        options: SearchOptions,
        nearest: NearestChunks | None,
        not_used: list[str],
    ) -> tuple[SearchTier, tuple[FoundCode, ...]]:
        hybrid = msgspec.structs.replace(options.hybrid, top_k=options.top_k)
        tiers = DocumentTiers(
            self.project,
            connection,
            self.words.paths.get,
            lambda: sorted(path for path in self.words.all_paths() if is_below(path, options.below)),
            nearest,
        )
        asked = msgspec.structs.replace(options, hybrid=hybrid)
        answered = run_cascade(tiers_from(options.tier), lambda tier: tiers.search(tier, text, asked))
        not_used.extend(answered.not_used)
        texts = FoundPlaces(self.project)
        places = (Place(one.path, one.start, one.end, one.score, one.symbol, one.kind) for one in answered.found)
        found = (texts.found(place, answered.tier) for place in places)
        return answered.tier, tuple(result for result in found if result is not None)

    def _chunk_hits(
        self,
        connection: sqlite3.Connection,
        question: Question,
        options: SearchOptions,
        nearest: NearestChunks | None,
    ) -> tuple[ChunkHit, ...]:
        chunk = self.ranking.chunk
        columns = (chunk.path_column, chunk.symbol_column, chunk.text_column)
        counts, words, pairs = self.words.word_counts, question.words, question.pairs
        rows = find_any(connection, counts, words, pairs, columns, chunk.rows, options.below)
        cosines = nearest(MAX_NEAREST) if nearest else {}
        known = {row.chunk for row in rows}
        rows += search.chunks_by_id(connection, (one for one in cosines if one not in known))
        return tuple(
            ChunkHit(row.chunk, path, row.start, row.end, row.symbol, row.kind, -row.bm25, cosines.get(row.chunk))
            for row in rows
            if (path := self.words.paths.get(row.file)) is not None and is_below(path, options.below)
        )

    def _text_hits(self, question: Question, options: SearchOptions) -> tuple[ChunkHit, ...]:
        wanted = [path for path in self.not_indexed if is_below(path, options.below)]
        paths = self.project.files_with(question.words, wanted)
        names = sorted(question.code_names)
        if names and len(paths) > MAX_FILES:
            named = set(self.project.files_with(names, paths))
            paths.sort(key=lambda path: path not in named)
        hits = search_texts(question.words, paths, self.project.read, names)
        return tuple(
            ChunkHit(-place - 1, hit.path, hit.start, hit.end, bm25=hit.score) for place, hit in enumerate(hits)
        )

    def _definitions(
        self, connection: sqlite3.Connection, question: Question, options: SearchOptions
    ) -> tuple[DefinitionHit, ...]:
        asked = {form: name for name in reversed(question.names) for form in spellings(name)}
        rows = search.find_definitions(connection, sorted(asked)) if asked else []
        files: dict[str, set[int]] = {}
        for row in rows:
            files.setdefault(row.name, set()).add(row.file)
        return tuple(
            DefinitionHit(path, row.name, row.start, row.end, asked[row.name], len(files[row.name]))
            for row in rows
            if (path := self.words.paths.get(row.file)) is not None and is_below(path, options.below)
        )

    def _known(self, scores: Mapping[str, float], options: SearchOptions) -> dict[str, float]:
        """Return the scores of files that still exist and are below the searched path."""
        return {
            path: score
            for path, score in scores.items()
            if path in self.words.path_words and is_below(path, options.below)
        }

    def _follow_history(self) -> None:
        """Read the most recent commits if HEAD has moved; HEAD is checked at most once every few seconds."""
        if time.monotonic() - self._head_read < HISTORY_CHECKED_EVERY_S:
            return
        head = self.project.head()
        if head != self._head:
            self._head = head
            self.words.follow_history(*((self.project.commits(), self.project.edits()) if head else ((), ())))
        self._head_read = time.monotonic()

    def _edited_chunks(
        self, connection: sqlite3.Connection, files: Sequence[RankedFile], evidence: Evidence
    ) -> Iterator[ChunkHit]:
        """Yield chunks of files that lack the question's words but were changed by recent, similar commits."""
        known = {hit.chunk for hit in evidence.chunks}
        for path in (ranked.path for ranked in files if evidence.edits.get(ranked.path)):
            runs = evidence.edits[path]
            for row in search.chunks_of(connection, self.words.ids[path]) if path in self.words.ids else ():
                if row.chunk not in known and any(run.touches(row.start, row.end) for run in runs):
                    yield ChunkHit(row.chunk, path, row.start, row.end, row.symbol, row.kind)

    def _first_place(self, connection: sqlite3.Connection | None, ranked: RankedFile, share: float) -> Place | None:
        """Return the beginning of a file found only by its name, history or neighbours."""
        file = self.words.ids.get(ranked.path)
        row = search.first_chunk(connection, file) if connection and file is not None else None
        if row is None:
            return Place(ranked.path, 1, _FIRST_LINES, ranked.score * share, kind="file")
        return Place(ranked.path, row.start, row.end, ranked.score * share, row.symbol, row.kind)


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is the given folder or file, or is below it; everything is below ""."""
    return not folder or path == folder or path.startswith(folder + "/")
