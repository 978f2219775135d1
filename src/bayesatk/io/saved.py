"""Results on disk: netCDF and zarr."""

from numbers import Number
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk.results import check_result


def save(result: xr.DataTree, path: str | Path) -> Path:
    """Write a result to ``.nc`` (netCDF4 through h5netcdf) or ``.zarr``.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    path : path
        An existing netCDF file is replaced.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import bayesatk, tempfile, pathlib
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    >>> path = bayesatk.save(fit, pathlib.Path(tempfile.mkdtemp()) / "fit.nc")
    >>> bayesatk.load_result(path).identical(fit)
    True
    """
    path = Path(path)
    tree = check_result(result).map_over_datasets(_writable)
    if path.suffix == ".nc":
        tree.to_netcdf(path, engine="h5netcdf")
    elif path.suffix == ".zarr":
        tree.to_zarr(path, mode="w", consolidated=False)
    else:
        raise ValueError(f"path must end in .nc or .zarr; got {path.name!r}.")
    return path


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
