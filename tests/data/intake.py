"""One small evaluation in many forms, and how a refusal is asserted."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from hypothesis import HealthCheck, settings

import bayesatk as bk

CUBE = np.array([[[0, 1, 1], [1, 1, 0]], [[0, 0, 0], [1, 0, 1]]])

SYSTEMS, QUESTIONS = ["a", "b"], ["x", "y"]

LABELS = {"systems": SYSTEMS, "questions": QUESTIONS}

COUNTS = {("a", "x"): (1, 2), ("a", "y"): (1, 2), ("b", "x"): (3, 0), ("b", "y"): (1, 2)}

RECORDS = [
    {"system": s, "question": q, "trial": t, "outcome": int(CUBE[i, j, t])}
    for i, s in enumerate(SYSTEMS)
    for j, q in enumerate(QUESTIONS)
    for t in range(3)
]

FRAME = pd.DataFrame(RECORDS)

ARRAY = xr.DataArray(
    CUBE, dims=("system", "question", "trial"), coords={"system": SYSTEMS, "question": QUESTIONS}
)

REMEDY = re.compile(
    r"(?:^|[.;:(] ?)(Map|Name|Remove|Rename|Fill|Give|Pass|Use|Save|Convert|Export|Number|Say|Check"
    r"|Drop|Score|Write|Replace|Label|Quote|Split|Choose|Leave|Add|Reset|Is the order"
    r"|To read a file)\b"
    r"|go in with|is \[\[|is \{|is null|leaves them out|pass a long table|is None or NaN"
    r"|must (be one|be finite|be an? |be distinct|match|label|map|hold|have|be 'error')"
)

FUZZ = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def counts(data):
    """Counts of (wrong, right) by label, from the canonical dataset."""
    table = data.dataset["count"].transpose("system", "question", "category")
    assert table.dtype == np.int64
    labels = [(s, q) for s in data.systems for q in data.dataset["question"].values.tolist()]
    return dict(
        zip(labels, map(tuple, table.values.reshape(len(labels), -1).tolist()), strict=True)
    )


def written(folder, suffix, content):
    path = folder / f"runs{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


KINDS = ("pandas", "polars", "lazy", "csv", "tsv", "jsonl", "json", "parquet")


def as_kind(frame, kind, folder):
    """The table as it is, as one of another library, or in a file."""
    if kind == "pandas":
        return frame
    if kind in ("polars", "lazy"):
        return pl.from_pandas(frame) if kind == "polars" else pl.from_pandas(frame).lazy()
    path = folder / f"runs.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    else:
        frame.to_json(path, orient="records", lines=kind == "jsonl", double_precision=15)
    return path


def refused(call, *says):
    """Assert that the call raises OutcomeError with a remedy, and saying the given things."""
    with pytest.raises(bk.OutcomeError) as error:
        call()
    message = str(error.value)
    for words in says:
        assert re.search(words, message), f"{words!r} is not in: {message}"
    assert REMEDY.search(message), f"no remedy in: {message}"


def only_outcome_errors(call):
    """Call, and let every exception but OutcomeError (a warning too) fail the test."""
    try:
        data = call()
    except bk.OutcomeError:
        return None
    assert data.card()
    return data


def column(name, *values):
    """Return a good table, (x, x, y, y) by trials (1, 2, 1, 2), with one column replaced."""
    good = {"question": list("xxyy"), "trial": [1, 2, 1, 2], "outcome": [0, 1, 1, 1]}
    return pd.DataFrame(good | {name: pd.Series(values, dtype=object)})
