"""Runs of systems that gates compare, and the rules of a gate."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="package")
def gate_files(tmp_path_factory) -> Path:
    """Two policies, and runs of ``main`` and ``new``, which are alike, and of ``worse``."""
    folder = tmp_path_factory.mktemp("runs of two")
    rng = np.random.default_rng(1)
    p = rng.beta(0.8, 0.6, 30)
    for name, power in (("main", 1.0), ("new", 1.0), ("worse", 8.0)):
        runs = rng.binomial(1, p[:, None] ** power, (30, 4))
        rows = [f"q{q},{t},{mark}" for q, row in enumerate(runs) for t, mark in enumerate(row)]
        (folder / f"{name}.csv").write_text("question,trial,outcome\n" + "\n".join(rows) + "\n")
    for name, margin in (("gate", 0.2), ("strict", 0.001)):
        policy = f'metric = "pass@1"\nmargin = {margin}\neffect = -0.3\n'
        (folder / f"{name}.toml").write_text(policy)
    return folder
