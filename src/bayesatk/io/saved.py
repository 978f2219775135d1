"""Results on disk: netCDF and zarr."""

from pathlib import Path

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
    tree = check_result(result)
    if path.suffix == ".nc":
        tree.to_netcdf(path, engine="h5netcdf")
    elif path.suffix == ".zarr":
        tree.to_zarr(path, mode="w", consolidated=False)
    else:
        raise ValueError(f"path must end in .nc or .zarr; got {path.name!r}.")
    return path


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
