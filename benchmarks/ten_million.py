"""A million and ten million jittered molecules x 32, each in a cold process of its own: how time and memory grow."""

import tempfile
from pathlib import Path

from benchmarks import data
from benchmarks.cold import OURS, K, cold, compile_ours

SIZES = 1_000_000, 10_000_000


def run():
    compile_ours()
    seconds = []
    for n in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            data.jittered_molecules(n, Path(folder) / "X.npy")
            result, taken = cold(OURS, Path(folder), K)
        seconds.append(taken)
        ratio = seconds[-1] / seconds[0]
        yield {
            "benchmark": f"data file to saved graph, cold process, jittered molecules {n:,} x 32, k={K}",
            "seconds": taken,
            "ratio_to_one_million": ratio,
            **result,
            "wanted": "ratio_to_one_million <= 12, recall >= 0.97, peak_gb <= 20",
            "ok": ratio <= 12 and result["recall"] >= 0.97 and result["peak_gb"] <= 20,
        }
