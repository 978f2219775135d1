"""How time grows with questions, trials, k and configurations; what importing and loading cost."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import bayesatk as bk
from bayesatk.posterior.model import CountModel
from bayesatk.priors import HyperPrior

Row = tuple[str, str, str, str]
Timer = Callable[..., float]


def rows(median_ms: Timer) -> list[Row]:
    """Slopes, import times and memory."""
    return [*_slopes(median_ms), *_imports(), *_memory()]


def _slopes(median_ms: Timer) -> list[Row]:
    rng = np.random.default_rng(5)

    def integrated(questions: int, trials: int) -> Callable[[], object]:
        successes = rng.binomial(trials, rng.beta(0.5, 0.5, questions))
        counts = np.stack([trials - successes, successes], axis=1)
        model = CountModel.of(HyperPrior(families="beta"), counts)
        return partial(model.refitted, "beta")

    def evaluation(trials: int, k: int) -> Callable[[], object]:
        data = rng.binomial(trials, 0.5, 500), np.full(500, trials)
        options = {"pooling": "none", "draws": 100, "rng": 1}
        return partial(bk.evaluate, data, f"pass@{k}", **options)

    studies: list[tuple[str, Sequence[int], Callable[[int], Callable[[], object]], str]] = [
        (
            "hyperparameters against questions M (n=16, tallied)",
            (100, 1000, 10_000, 100_000),
            lambda m: integrated(m, 16),
            "<= 0.3",
        ),
        (
            "point estimate pass@8 against questions M (n=64)",
            (10_000, 100_000, 1_000_000),
            lambda m: partial(bk.published.pass_at_k, rng.integers(0, 2, (m, 64), np.int8), 8),
            "<= 1.1",
        ),
        (
            "evaluate pass@4 against trials n (M=500, no pooling)",
            (16, 64, 256),
            lambda n: evaluation(n, 4),
            "",
        ),
        (
            "evaluate against k (M=500, n=64, no pooling)",
            (4, 16, 64, 256),
            lambda k: evaluation(64, k),
            "",
        ),
        (
            "p-value against configurations t (n=1000)",
            (10, 1000, 100_000),
            lambda t: partial(bk.guessing.max_random_p_value, 0.6, 1000, 0.5, t=t),
            "<= 0.1",
        ),
    ]
    found = []
    for name, sizes, make, goal in studies:
        times = [median_ms(make(size), 5) for size in sizes]
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        told = ", ".join(f"{size:g}: {ms:.2g} ms" for size, ms in zip(sizes, times, strict=True))
        found.append((name, told, f"slope {slope:+.2f}", goal))
    return found


def _imports() -> list[Row]:
    """Wall time of a fresh process that imports, less that of one that does nothing."""

    def seconds(code: str) -> float:
        script = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
        command = [sys.executable, "-c", script]
        runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(3)]
        return sorted(float(each.stdout) for each in runs)[1]

    pymc = seconds("import pymc")
    cases = {
        "import bayesatk": "import bayesatk",
        "import bayesatk and the published names": "import bayesatk; bayesatk.published.pass_at_k",
        "import bayesatk and evaluate": "import bayesatk; bayesatk.evaluate",
    }
    return [
        (name, f"{1e3 * own:.0f} ms", f"{own / pymc:.2f} x import pymc ({pymc:.1f} s)", "")
        for name, own in ((name, seconds(code)) for name, code in cases.items())
    ]


def _memory() -> list[Row]:
    """Peak memory of reading a log of long transcripts, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.json"
        path.write_text(json.dumps(_log()))
        size = path.stat().st_size
        extra = _peak(f"bayesatk.load({str(path)!r})") - _peak("bayesatk.load")
    name = f"loading an Inspect log of {size / 1e6:.0f} MB, 100 samples"
    return [(name, f"{extra / 1e6:.0f} MB more", f"{extra / size:.2f} x the file", "<= 0.2")]


def _log() -> dict[str, object]:
    samples = [
        {
            "id": f"q{number // 4}",
            "epoch": number % 4 + 1,
            "input": f"q{number // 4}",
            "target": "1",
            "messages": "x" * 2_000_000,
            "scores": {"s": {"value": "C"}},
        }
        for number in range(100)
    ]
    spec = {"model": "m", "task": "t"}
    return {"version": 2, "status": "success", "eval": spec, "samples": samples}


def _peak(code: str) -> int:
    """Largest resident memory of a process that runs the code, in bytes (Linux)."""
    script = (
        f"import bayesatk; {code}; "
        "lines = open('/proc/self/status').read().splitlines(); "
        "print(next(line.split()[1] for line in lines if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return 1024 * int(done.stdout)
