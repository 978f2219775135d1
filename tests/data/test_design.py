"""Formulas and names of covariates as columns, and what is refused."""

import pickle

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.data.design import Design

DATA = bk.tally(
    [[1, 0], [1, 1], [0, 0], [0, 1], [1, 1]],
    covariates={"minutes": [1, 4, 16, 3, 8], "domain": ["a", "b", "a", "c", "b"]},
)


def test_names_and_a_formula_of_them_are_the_same() -> None:
    pytest.importorskip("formulaic")
    names = Design.of(DATA.dataset, ["minutes", "domain"])
    formula = Design.of(DATA.dataset, "~ minutes + domain")
    assert names.coefficients == formula.coefficients
    assert names.names == ["minutes", "domain[T.b]", "domain[T.c]"]
    assert np.array_equal(
        names.columns(names.frame), formula.columns(formula.frame[["minutes", "domain"]])
    )
    assert Design.of(DATA.dataset, "minutes").text == "~ minutes"


@pytest.mark.parametrize(
    "asked",
    [
        ["minutes", "domain"],
        "~ log2(minutes) + domain",
        "~ poly(minutes, 2)",
        "~ log(minutes):domain",
    ],
)
def test_the_basis_is_orthonormal_and_goes_back(asked) -> None:
    if isinstance(asked, str):
        pytest.importorskip("formulaic")
    design = Design.of(DATA.dataset, asked)
    basis = design.basis
    size = len(design.coefficients)
    assert basis.rows.T @ basis.rows / 5 == pytest.approx(np.eye(size), abs=1e-9)
    own = np.arange(1.0, 1.0 + size)
    coefficients = basis.coefficients(own)
    columns = np.column_stack([np.ones(5), design.columns(design.frame)])
    assert columns @ coefficients == pytest.approx(basis.rows @ own)
    assert basis.logits(coefficients) == pytest.approx(own)
    again = pickle.loads(pickle.dumps(design))
    assert again.basis.rows == pytest.approx(basis.rows)


def test_columns_at_values_average_the_others() -> None:
    pytest.importorskip("formulaic")
    design = Design.of(DATA.dataset, "~ log2(minutes) + domain")
    frame, columns = design.at({"minutes": [2.0, 32.0]})
    assert frame["minutes"].tolist() == [2.0, 32.0]
    assert columns == pytest.approx(np.array([[1, 1, 0.4, 0.2], [1, 5, 0.4, 0.2]]))
    _, both = design.at({"minutes": [2.0], "domain": ["a", "c"]})
    assert both.tolist() == [[1, 1, 0, 0], [1, 1, 0, 1]]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("log2(minutes)", "begins with ~"),
        ([], "begins with ~"),
        (["minutes", "minutes"], "different names"),
        (5, "begins with ~"),
        (["mins"], r"they have 'minutes', 'domain'.*tally\(data, covariates=\['mins'\]\)"),
    ],
)
def test_names_are_refused(asked, says) -> None:
    with pytest.raises(bk.OutcomeError, match=says):
        Design.of(DATA.dataset, asked)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("~ log2(mins)", "got 'mins'"),
        ("~ log2(minutes", "Expected"),
        ("~ log2(minutes - 1)", r"'log2\(minutes - 1\)' is -inf for question 0"),
        ("~ 0 + domain", "intercept"),
        ("~ 1", "begins with ~"),
        ("~ minutes + I(2 * minutes)", "depends on the columns before it"),
        ("~ log2(domain)", "cannot be worked out"),
        # What a file that was loaded might say:
        ("~ {__import__('os')}", "none of the functions"),
        ("~ __import__('os').system('x')", "dots"),
        ("~ minutes + open('x')", "none of the functions"),
        ("~ I((lambda: 3)())", "names, numbers"),
        ("~ I([x for x in minutes])", "names, numbers"),
        ("~ log2(minutes if 1 else 2)", "names, numbers"),
        ("~ 9**9**9", "powers"),
        ("~ poly(minutes, 999)", "999"),
        ("~ " + "*".join(["minutes"] * 12), "crossed"),
        ("~ np.log(minutes)", "dots"),
    ],
)
def test_formulas_are_refused(asked, says) -> None:
    pytest.importorskip("formulaic")
    with pytest.raises(bk.OutcomeError, match=says):
        Design.of(DATA.dataset, asked)


def test_columns_that_say_nothing_are_refused() -> None:
    same = bk.tally([[1], [0], [1]], covariates={"size": [2, 2, 2], "mean": [1, None, 2]})
    with pytest.raises(bk.OutcomeError, match="'size' is constant"):
        Design.of(same.dataset, ["size"])
    with pytest.raises(bk.OutcomeError, match=r"'mean' is missing for 1 \(1 of 3 questions\)"):
        Design.of(same.dataset, ["mean"])


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ({"hours": [1]}, "must name covariates of the model, 'minutes', 'domain'"),
        ({"domain": ["z"]}, "must be one of"),
        ({"minutes": ["long"]}, "finite numbers"),
        ({"minutes": []}, "must have a value"),
        ({}, "values of covariates by name"),
        (3, "values of covariates by name"),
    ],
)
def test_values_are_refused(at, says) -> None:
    with pytest.raises(bk.OutcomeError, match=says):
        Design.of(DATA.dataset, ["minutes", "domain"]).read_at(at)


@pytest.mark.parametrize(
    "values", [[1e300, 2e300, -1e300], [1e-300, 2e-300, 5e-300], [1e9 + 1, 1e9 + 2, 1e9 + 4]]
)
def test_columns_of_any_size(values) -> None:
    data = bk.tally([[1, 1], [0, 1], [0, 0]], covariates={"x": values})
    rows = Design.of(data.dataset, ["x"]).basis.rows
    assert rows.T @ rows / 3 == pytest.approx(np.eye(2), abs=1e-9)
    order = np.argsort(values)
    assert (np.diff(rows[order, 1]) * np.sign(rows[order[-1], 1]) > 0.0).all()
