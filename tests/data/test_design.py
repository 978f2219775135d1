"""Covariates as columns, and what is refused."""

import pickle

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.data.design import CovariateDesign

DATA = bk.tally(
    [[1, 0], [1, 1], [0, 0], [0, 1], [1, 1]],
    covariates={"minutes": [1, 4, 16, 3, 8], "domain": ["a", "b", "a", "c", "b"]},
)


def test_a_text_has_a_column_for_each_category_but_the_first() -> None:
    design = CovariateDesign.of(DATA.dataset, ["minutes", "domain"])
    assert design.names == ["minutes", "domain[T.b]", "domain[T.c]"]
    assert design.coefficients == ["Intercept", *design.names]
    assert design.columns(design.frame).tolist() == [
        [1, 0, 0],
        [4, 1, 0],
        [16, 0, 0],
        [3, 0, 1],
        [8, 1, 0],
    ]
    assert CovariateDesign.of(DATA.dataset, "minutes").names == ["minutes"]


@pytest.mark.parametrize("asked", [["minutes"], ["minutes", "domain"], ["domain", "minutes"]])
def test_the_basis_is_orthonormal_and_goes_back(asked) -> None:
    design = CovariateDesign.of(DATA.dataset, asked)
    basis = design.basis
    size = len(design.coefficients)
    assert basis.rows.T @ basis.rows / 5 == pytest.approx(np.eye(size), abs=1e-9)
    weights = np.arange(1.0, 1.0 + size)
    coefficients = basis.coefficients(weights)
    columns = np.column_stack([np.ones(5), design.columns(design.frame)])
    assert columns @ coefficients == pytest.approx(basis.rows @ weights)
    assert basis.logits(coefficients) == pytest.approx(weights)
    again = pickle.loads(pickle.dumps(design))
    assert again.basis.rows == pytest.approx(basis.rows)


def test_columns_at_values_average_the_others() -> None:
    design = CovariateDesign.of(DATA.dataset, ["minutes", "domain"])
    frame, columns = design.at({"minutes": [2.0, 32.0]})
    assert frame["minutes"].tolist() == [2.0, 32.0]
    assert columns == pytest.approx(np.array([[1, 2, 0.4, 0.2], [1, 32, 0.4, 0.2]]))
    _, both = design.at({"minutes": [2.0], "domain": ["a", "c"]})
    assert both.tolist() == [[1, 2, 0, 0], [1, 2, 0, 1]]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("log2(minutes)", "is a column that you compute before"),
        ([], "must be different names"),
        (["minutes", "minutes"], "different names"),
        (5, "must be different names"),
        (["mins"], r"they have 'minutes', 'domain'.*tally\(data, covariates=\['mins'\]\)"),
    ],
)
def test_names_are_refused(asked, says) -> None:
    with pytest.raises(bk.OutcomeError, match=says):
        CovariateDesign.of(DATA.dataset, asked)


@pytest.mark.parametrize(("covariates", "says"), [
    ({"size": [2, 2, 2]}, "'size' is constant"),
    ({"size": [1, 2, 4], "double": [2, 4, 8]}, "'double' depends on the columns before it"),
    ({"size": [1, np.inf, 4]}, "must give finite numbers; 'size' is inf for"),
    ({"size": [1, None, 2]}, r"'size' is missing for 1 \(1 of 3 questions\)"),
])  # fmt: skip
def test_columns_that_say_nothing_are_refused(covariates, says) -> None:
    data = bk.tally([[1], [0], [1]], covariates=covariates)
    with pytest.raises(bk.OutcomeError, match=says):
        CovariateDesign.of(data.dataset, [*covariates])


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
        CovariateDesign.of(DATA.dataset, ["minutes", "domain"]).read_at(at)


@pytest.mark.parametrize(
    "values", [[1e300, 2e300, -1e300], [1e-300, 2e-300, 5e-300], [1e9 + 1, 1e9 + 2, 1e9 + 4]]
)
def test_columns_of_any_size(values) -> None:
    data = bk.tally([[1, 1], [0, 1], [0, 0]], covariates={"x": values})
    rows = CovariateDesign.of(data.dataset, ["x"]).basis.rows
    assert rows.T @ rows / 3 == pytest.approx(np.eye(2), abs=1e-9)
    order = np.argsort(values)
    assert (np.diff(rows[order, 1]) * np.sign(rows[order[-1], 1]) > 0.0).all()
