"""The benefit and the cost of vectors in the search, on the questions of bench/commit_questions.py (R-239).

    python -m bench.bench_vectors REPOSITORY.git… --onnx FOLDER [--limit 120] [--keep FOLDER] [--threads 1]

Each question is asked of the state before its commit. It compares the document's tiers (`fts`, `hybrid` 0.7/0.3,
`vector`), and the joined ranking without vectors and with them, for values of two weights of
`retrieval/ranking/weights.toml` that are chosen from this table on fitted repositories: `cosine` of a chunk beside its
BM25, `vector` of a file. Vectors are cached by text (`--keep`), so another run costs nothing. It also prints the number
of pieces of code, and the CPU seconds of the model.
"""

from __future__ import annotations

import argparse
import asyncio
import pickle
import sys
import tempfile
import time
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import msgspec
import numpy

from bench.commit_questions import GitDirectory, questions_of
from bench.fit_ranking import Answered, score
from bench.indexed_history import IndexedHistory
from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.model.found_code import SearchTier
from codecompanion.retrieval.ranking.join import file_signals
from codecompanion.retrieval.ranking.question import read_question
from codecompanion.retrieval.ranking.tables import ranking
from codecompanion.retrieval.search.embedding_text import embedding_text
from codecompanion.session.code import searcher
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.store.code_index.index_writer import chunk_hash

TIERS: tuple[SearchTier, ...] = ("fts", "vector", "hybrid")
COUNTED = (
    (0.0, 0.0),
    (0.0, 0.3),
    (0.0, 0.8),
    *((cosine, vector) for cosine in (0.3, 0.5, 0.8) for vector in (0.0, 0.1, 0.3)),
)
"""The weights of a cosine: beside the BM25 of its chunk, and as a signal of the file."""

Joined = dict[float, list[Answered]]


class KeptVectors:
    """Vectors by the hash of a chunk, cached in a file."""

    def __init__(self, embedder: OnnxEmbedder, path: Path | None) -> None:
        self._embedder, self._path = embedder, path
        self._known: dict[bytes, array[float]] = {}
        if path is not None and path.exists():
            self._known = pickle.loads(path.read_bytes())  # noqa: S301 - written below
        self.cpu_s, self.made = 0.0, 0

    def follow(self, history: IndexedHistory) -> None:
        """Compute the missing vectors of the state, and the matrix of all vectors."""
        missing = {
            digest: embedding_text(chunk)
            for chunk in history.chunks()
            if (digest := chunk_hash(chunk.text)) not in self._known
        }
        started = time.process_time()
        vectors = asyncio.run(self._embedder.embed(list(missing.values())))
        self.cpu_s += time.process_time() - started
        self.made += len(missing)
        self._known.update(zip(missing, vectors, strict=True))
        with history.reader.reading() as connection:
            rows = connection.execute("SELECT id, hash FROM chunks").fetchall()
        rows = [(chunk, self._known[digest]) for chunk, digest in rows if self._known.get(digest)]
        self._ids = [chunk for chunk, _ in rows]
        self._matrix = numpy.array([vector for _, vector in rows], dtype=numpy.float32)

    def ask(self, question: str) -> numpy.ndarray:
        """Return the cosines of all chunks of the state."""
        query = asyncio.run(self._embedder.embed_query(question))
        return self._matrix @ numpy.array(query, dtype=numpy.float32)

    def nearest(self, cosines: numpy.ndarray, k: int) -> Mapping[int, float]:
        """Return chunk id → cosine of the `k` nearest chunks."""
        best = numpy.argsort(-cosines)[:k]
        return {self._ids[row]: float(cosines[row]) for row in best}

    def keep(self) -> None:
        """Write the vectors to the file."""
        if self._path is not None:
            self._path.write_bytes(pickle.dumps(self._known))


def measure(path: Path, limit: int, vectors: KeptVectors) -> tuple[Joined, dict[str, list[Answered]]]:
    """Return `cosine` → the signals of the questions, and the results of the document's tiers, as signals too."""
    git = GitDirectory(path)
    joined: Joined = {cosine: [] for cosine, _ in COUNTED}
    tiers: dict[str, list[Answered]] = {tier: [] for tier in TIERS}
    with tempfile.TemporaryDirectory() as folder:
        history = IndexedHistory(git, Path(folder))
        search = searcher.CodeSearcher(history)
        for asked in questions_of(git, limit):
            history.move_to(asked.parent)
            right = frozenset(asked.changed) & frozenset(history.paths())
            if not right:
                continue
            vectors.follow(history)
            cosines = vectors.ask(asked.text)
            question = read_question(asked.text)
            with history.reader.reading() as connection:
                search.words.follow_index(connection)
                evidence = search.evidence(
                    connection, question, SearchOptions(), lambda k, found=cosines: vectors.nearest(found, k)
                )
            for cosine, found in joined.items():
                chunk = msgspec.structs.replace(search.ranking.chunk, cosine=cosine)
                counted = msgspec.structs.replace(search.ranking, chunk=chunk)
                found.append(Answered(file_signals(question, evidence, counted), right))
            for tier in TIERS:
                options = SearchOptions(tier=tier, top_k=50, with_common=False)
                outcome = search.search(asked.text, options, lambda k, found=cosines: vectors.nearest(found, k))
                order = {"found": {one.path: 1.0 / (n + 1) for n, one in reversed([*enumerate(outcome.results)])}}
                tiers[tier].append(Answered(order, right))
        print(f"{path.parent.name}: {len(vectors._ids)} pieces of code in the last state")
        history.close()
    return joined, tiers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--onnx", required=True, help="folder with model.onnx and tokenizer.json")
    parser.add_argument("--limit", type=int, default=120, help="questions of each repository, the last ones")
    parser.add_argument("--keep", type=Path, help="folder that keeps the vectors")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    searcher.HISTORY_CHECKED_EVERY_S = -1.0
    embedder = OnnxEmbedder(EmbeddingSettings(onnx=arguments.onnx), threads=arguments.threads)
    weights = msgspec.structs.asdict(ranking().weights)
    every: list[Joined] = []
    for path in arguments.repositories:
        kept = arguments.keep / f"{path.parent.name}.pickle" if arguments.keep else None
        vectors = KeptVectors(embedder, kept)
        joined, tiers = measure(path, arguments.limit, vectors)
        vectors.keep()
        every.append(joined)
        name = f"{path.parent.name:24} n {len(joined[0.0]):3}"
        for tier, found in tiers.items():
            print(name, f"{tier:12}", shown(score(found, {"found": 1.0})), flush=True)
        for cosine, vector in COUNTED:
            figures = score(joined[cosine], weights | {"vector": vector})
            print(name, f"joined cosine {cosine:<3g} vector {vector:<3g}", shown(figures), flush=True)
        print(f"{name}: {vectors.made} vectors made in {vectors.cpu_s:.0f} s of CPU", flush=True)
    if len(every) > 1:
        for cosine, vector in COUNTED:
            rows = [score(joined[cosine], weights | {"vector": vector}) for joined in every]
            mean = [sum(values) / len(rows) for values in zip(*rows, strict=True)]
            print(f"{'mean':30} joined cosine {cosine:<3g} vector {vector:<3g}", shown(mean))


def shown(figures: Sequence[float]) -> str:
    """Return the figures in words."""
    ten, five, rank, share = figures
    return f"top10 {ten:.3f}  top5 {five:.3f}  mrr {rank:.3f}  files {share:.3f}"


if __name__ == "__main__":
    main()
