"""Results on disk: netCDF and zarr."""

import shutil
from numbers import Number
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk.results.result import Result
from bayesatk.results.schema import check_result


def save(result: xr.DataTree | Result, path: str | Path) -> Path:
    """Write a result to ``.nc`` (netCDF4 through h5netcdf) or ``.zarr``.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    path : path
        What is there is replaced, once everything is written.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    ValueError
        If the path ends in something else, or the result holds what cannot be written; the old file
        is then as it was.

    See Also
    --------
    bayesatk.load_result : reads it back.
    bayesatk.export : tables for other programs.

    Examples
    --------
    >>> import bayesatk, tempfile, pathlib
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    >>> path = bayesatk.save(fit, pathlib.Path(tempfile.mkdtemp()) / "fit.nc")
    >>> bayesatk.load_result(path).identical(fit)
    True
    """
    path = Path(path)
    tree = Result.of(result).tree.map_over_datasets(_writable)
    if path.suffix not in (".nc", ".zarr"):
        raise ValueError(f"path must end in .nc or .zarr; got {path.name!r}.")
    beside = path.with_name(f".{path.stem}-unfinished{path.suffix}")
    try:
        if path.suffix == ".nc":
            tree.to_netcdf(beside, engine="h5netcdf")
        else:
            tree.to_zarr(beside, mode="w", consolidated=False)
    except (TypeError, ValueError, NotImplementedError) as error:
        _remove(beside)
        raise ValueError(
            f"result must be made of numbers and text to be saved; {error}. Nothing was written."
        ) from error
    if path.is_dir():
        _remove(path)
    beside.replace(path)
    return path


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _writable(group: xr.Dataset) -> xr.Dataset:
    """Return the group with arrays of objects as numbers, or as text.

    Statistics of sequential Monte Carlo have one value per stage, and as many as its chain took:
    they are filled up with NaN. No text ("no message") is empty text.
    """
    found = {
        str(name): _plain(variable.variable)
        for name, variable in group.data_vars.items()
        if variable.dtype == object
    }
    return group.assign(found) if found else group


def _plain(variable: xr.Variable) -> xr.Variable:
    values = variable.values.ravel().tolist()
    if all(isinstance(one, Number) for one in values):
        return xr.Variable(variable.dims, variable.values.astype(float), variable.attrs)
    if any(isinstance(one, list | tuple | np.ndarray) for one in values):
        rows = [np.atleast_1d(np.asarray(one, float)) for one in values]
        padded = np.full((len(rows), max(map(len, rows))), np.nan)
        for row, own in zip(padded, rows, strict=True):
            row[: len(own)] = own
        dims = (*variable.dims, "stage")
        return xr.Variable(dims, padded.reshape(*variable.shape, -1), variable.attrs)
    known = [one for one in values if not pd.isna(one)]
    if not all(isinstance(one, str) for one in known):
        return variable  # refused by name when it is written
    text = np.array(["" if pd.isna(one) else str(one) for one in values], dtype=object)
    return xr.Variable(variable.dims, text.reshape(variable.shape), variable.attrs)


def load_result(path: str | Path) -> xr.DataTree:
    """Read a result that `save` wrote, whole, into memory.

    Parameters
    ----------
    path : path
        A ``.nc`` file or ``.zarr`` folder.

    Returns
    -------
    xarray.DataTree

    See Also
    --------
    bayesatk.save : writes it.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    if path.suffix not in (".nc", ".zarr"):
        raise ValueError(f"path must end in .nc or .zarr; got {path.name!r}.")
    options = (
        {"engine": "h5netcdf"}
        if path.suffix == ".nc"
        else {"engine": "zarr", "consolidated": False}
    )
    with xr.open_datatree(path, **options) as opened:
        return check_result(opened.load().copy())
