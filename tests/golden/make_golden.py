"""Make the golden file again: python -m tests.golden.make_golden [NAME ...]. Takes some minutes.

Names of studies make these alone. Nothing here imports bayesatk.
"""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.scores import Scored
from tests.golden.studies import Study, studies
from tests.golden.witness import Answer, Model, System, answers

FILE = Path(__file__).with_name("golden.json")
FAMILIES = ("beta", "inflated", "mixture")
RESULTS = ("rows", "log_evidence", "witness")
STATISTICS = ("mean", "sd", "ci_lower", "ci_upper")


def metrics_of(text: str) -> list[str]:
    """Names of single metrics: "pass@1,4" is two."""
    found = []
    for word in text.split():
        at = "^" if "^" in word else "@"
        name, _, rest = word.partition(at)
        numbers, colon, tau = rest.partition(":")
        found += [f"{name}{at}{k}{colon}{tau}" for k in numbers.split(",")] if rest else [name]
    return found


def basis(columns: dict[str, list[float]], questions: int) -> Any:
    """Covariates centred and made orthonormal over the questions: mean 0, sd 1, uncorrelated."""
    if not columns:
        return np.zeros((questions, 0))
    matrix = np.array(list(columns.values()), float).T
    matrix = matrix - matrix.mean(0)
    left, _, _ = np.linalg.svd(matrix, full_matrices=False)
    return left * np.sqrt(questions)


def model_of(study: Study, family: str) -> Model:
    """The model of a study, with one family of difficulties under partial pooling."""
    options = study["options"]
    trials = np.array(study["trials"], float)
    questions = len(trials)
    earlier = study.get("prior_trials")
    zeros = np.zeros(questions)
    power = (zeros, zeros)
    if earlier:
        power = tuple(
            earlier["weight"] * np.array(earlier[name], float) for name in ("right", "trials")
        )
    system = System(np.array(study["right"], float), trials, *power)
    share = np.array(study.get("weight", np.ones(questions)), float)
    groups = group_share = None
    if "group" in study:
        names, groups = np.unique(study["group"], return_inverse=True)
        profile = options.get("group_weights", "questions")
        within = np.bincount(groups, share)
        group_share = {"questions": within, "equal": np.ones(len(names))}.get(str(profile))
        if group_share is None:
            group_share = np.array([profile[name] for name in names])
        share = share * (group_share / within)[groups]
        group_share = group_share / group_share.sum()
    judge = study.get("judge")
    rates = judge and (
        (judge["tp"] + 1.0, judge["p"] - judge["tp"] + 1.0),
        (judge["fp"] + 1.0, judge["n"] - judge["fp"] + 1.0),
    )
    prior = dict(options.get("prior", {}))
    fixed = (prior.pop("alpha", 1.0), prior.pop("beta", 1.0))
    pooling = options.get("pooling", "partial")
    other = {name: tuple(pair) for name, pair in prior.items()}
    return Model(
        system,
        family if pooling == "partial" else pooling,
        basis(study.get("covariates", {}), questions),
        groups,
        share / share.sum(),
        group_share,
        "weight" in study,
        rates,
        fixed=fixed,
        **other,
    )


def scored_model(study: Study) -> Scored:
    """The model of a study of scored categories."""
    names = sorted(study["scores"], key=study["scores"].get)

    def counts(marks: list[list[str]]) -> Any:
        return np.array([[row.count(name) for name in names] for row in marks], float)

    options, earlier = study["options"], study.get("prior_trials")
    own = counts(study["marks"])
    power = counts(earlier["marks"]) * earlier["weight"] if earlier else np.zeros_like(own)
    prior, scores = options.get("prior", {}), np.array([study["scores"][name] for name in names])
    mean = prior.get("mean", prior.get("concentration", [1.0] * len(names)))
    icc = tuple(prior.get("icc", (1.0, 1.0)))
    share = np.array(study.get("weight", np.ones(len(own))), float)
    groups = np.unique(study["group"], return_inverse=True)[1] if "group" in study else None
    rows = basis(study.get("covariates", {}), len(own))
    return Scored(
        own,
        power,
        scores,
        options["pooling"],
        tuple(mean),
        share / share.sum(),
        icc,
        "weight" in study,
        rows,
        groups,
    )


def rows_of(study: Study, table: dict[tuple[str, str], Answer]) -> list[dict[str, Any]]:
    rows = []
    for (metric, target), answer in table.items():
        row: dict[str, Any] = {"system": "system", "metric": metric, "target": target}
        for i, name in enumerate(STATISTICS):
            row[name] = [float(f"{answer.values[i]:.14g}"), float(f"{answer.errors[i]:.2g}")]
        rows.append(row)
    return rows


def answered(study: Study, seed: int = 1) -> dict[str, Any]:
    """All statistics of a study, with errors."""
    started = time.perf_counter()
    metrics, targets = metrics_of(study["metrics"]), study["targets"]
    difficulty = study["options"].get("difficulty", "beta")
    families, prior = FAMILIES if difficulty == "averaged" else (difficulty,), None
    if isinstance(difficulty, dict):
        families, prior = tuple(difficulty), list(difficulty.values())
    models: list[Any] = [model_of(study, name) for name in families if "right" in study]
    models = models or [scored_model(study)]
    power, draws = study.get("points", (14, 25000))
    table, evidence, effective = answers(
        models,
        metrics,
        targets,
        seed,
        power,
        draws,
        components=study.get("components", 3),
        family_prior=prior,
    )
    seconds = time.perf_counter() - started
    note = {"effective": [round(share, 3) for share in effective], "seconds": round(seconds, 1)}
    log = [float(f"{evidence.values:.14g}"), float(f"{evidence.errors:.2g}")]
    return study | {"rows": rows_of(study, table), "log_evidence": log, "witness": note}


def written(results: dict[str, dict[str, Any]]) -> None:
    """Write all studies that have results, with their declarations of now."""
    lines = [json.dumps(own | results[own["name"]]) for own in studies() if own["name"] in results]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def main(names: list[str]) -> None:
    known = json.loads(FILE.read_text()) if FILE.exists() else []
    results = {own["name"]: {key: own[key] for key in RESULTS if key in own} for own in known}
    wanted = [own for own in studies() if own["name"] in names or not names]
    with ProcessPoolExecutor(2) as pool:
        for study in pool.map(answered, wanted):
            results[study["name"]] = {key: study[key] for key in RESULTS if key in study}
            print(study["name"], study.get("witness"), flush=True)
            written(results)


if __name__ == "__main__":
    main(sys.argv[1:])
