"""`save` and `load_result`: results on disk as netCDF or zarr, with a digest of the content."""

import hashlib
import json
import re
from collections.abc import Mapping
from itertools import zip_longest
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.writing import Deferred, replacing, replacing_folder
from bayesatk.data.study import declaration_of
from bayesatk.io.sources import max_unpacked_bytes
from bayesatk.results.result import Fit, Result
from bayesatk.results.tree import ResultTree

DIGEST = "content_digest"  # attribute of the root group
# Attributes of the root group that hold JSON.
_JSON_ATTRIBUTES = ("study", "assumptions", "input_files", "citations", "versions", "notes")
_ZARR_FILE = re.compile(r"(.+/)?(zarr\.json|c(/\d+)*)", re.ASCII)  # metadata and chunks


def save(fit: Fit, path: str | Path) -> Path:
    """Write a result to ``.nc`` (netCDF4 through h5netcdf) or ``.zarr``.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    path : path
        An existing result is replaced once everything is written. A file or folder that is not a
        result is never replaced.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    ValueError
        If the path has another ending, if there is something there that is not a result, or if this
        result has values that cannot be written.
    OSError
        If the disk is full, or the folder cannot be written. After any error, existing files are
        unchanged.

    See Also
    --------
    bayesatk.load_result : reads it back.
    bayesatk.table : tables, which pandas writes for other programs.

    Examples
    --------
    >>> import bayesatk, tempfile, pathlib
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    >>> path = bayesatk.save(fit, pathlib.Path(tempfile.mkdtemp()) / "fit.nc")
    >>> bayesatk.load_result(path).identical(fit)
    True
    """
    path = Path(path)
    tree = Result.of(fit, None).tree.map_over_datasets(_writable)
    tree.attrs = {**tree.attrs, DIGEST: digest_of(tree)}
    if path.suffix not in (".nc", ".zarr"):
        raise ValueError(f"path must end in .nc or .zarr; got {path.name!r}.")
    _refuse_foreign(path)
    try:
        if path.suffix == ".zarr":
            with replacing_folder(path) as folder:
                tree.to_zarr(folder, mode="w", consolidated=False)
            return path
        with replacing(path) as file:
            deferred = Deferred(file)
            tree.to_netcdf(deferred, engine="h5netcdf")
            deferred.check()
    except (TypeError, ValueError, NotImplementedError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ValueError(
            f"fit must be made of numbers and text to be saved; {error}. Nothing was written."
        ) from error
    return path


def _refuse_foreign(path: Path) -> None:
    """Refuse to replace anything but a result, or a folder with foreign files."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return
    try:
        attrs = _stored_attrs(path)
    except (OSError, ValueError, KeyError, RecursionError):
        attrs = {}
    is_result = {"schema_version", "input_sha256"} <= set(attrs)
    foreign_files = _foreign_files(path) if is_result else [path.name]
    if foreign_files:
        raise ArgumentError(
            "path",
            f" must be new, or that of a result of bayesatk; {foreign_files[0]} is none. Name "
            "another, or remove it yourself.",
        )


def _stored_attrs(path: Path) -> dict[str, Any]:
    """Return the attributes of the root group, none if the path is no store of this kind."""
    if path.suffix == ".zarr":
        attributes = json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
        return attributes if isinstance(attributes, dict) else {}
    import h5netcdf

    if not path.is_file():
        return {}
    with h5netcdf.File(path, "r") as file:
        return dict(file.attrs)


def _foreign_files(path: Path) -> list[str]:
    """Return the files in a folder that are neither metadata nor chunks of zarr."""
    return [
        str(file.relative_to(path.parent))
        for file in sorted(path.rglob("*"))
        if file.is_symlink()
        or not (file.is_dir() or _ZARR_FILE.fullmatch(file.relative_to(path).as_posix()))
    ]


def _writable(group: xr.Dataset) -> xr.Dataset:
    """Return the group with object arrays replaced by arrays of numbers or text.

    Statistics of sequential Monte Carlo have one value per stage, and chains have different numbers
    of stages: they are padded with NaN. A missing text becomes "".
    """
    objects = {name: array for name, array in group.data_vars.items() if array.dtype == object}
    return group.assign({name: _plain(array.variable) for name, array in objects.items()})


def _plain(variable: xr.Variable) -> xr.Variable:
    values = variable.values.ravel().tolist()
    if any(isinstance(element, list | tuple | np.ndarray) for element in values):
        rows = [np.atleast_1d(np.asarray(element, float)) for element in values]
        padded = np.array(list(zip_longest(*rows, fillvalue=np.nan))).T
        dims = (*variable.dims, "stage")
        return xr.Variable(dims, padded.reshape(*variable.shape, -1), variable.attrs)
    if all(isinstance(element, Number) for element in values):
        plain = np.array(values, float)
    else:
        texts = ["" if pd.isna(element) else element for element in values]
        if not all(isinstance(text, str) for text in texts):
            return variable  # refused by name when the tree is written
        plain = np.array(texts, dtype=object)
    return xr.Variable(variable.dims, plain.reshape(variable.shape), variable.attrs)


def load_result(path: str | Path) -> xr.DataTree:
    """Read a result that `save` wrote, all of it into memory.

    Parameters
    ----------
    path : path
        A ``.nc`` file or ``.zarr`` folder.

    Returns
    -------
    xarray.DataTree
        Identical to the result that was saved: the digest of all variables and attributes that is
        stored with it is compared. Results without a digest are read unchecked.

    Raises
    ------
    ValueError
        If it is no result, or is damaged, or is replaced while it is read.

    See Also
    --------
    bayesatk.save : writes it.

    Examples
    --------
    >>> import bayesatk, tempfile
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "mean", pooling="none", rng=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_result(bayesatk.save(fit, f"{folder}/fit.nc")).identical(fit)
    True
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    if path.suffix not in (".nc", ".zarr"):
        raise ValueError(f"path must end in .nc or .zarr; got {path.name!r}.")
    if not path.is_dir() and not path.is_file():
        raise ValueError(f"path must be a file or folder; {path} is a pipe or device.")
    try:
        tree = _read(path)
        if "schema_version" in tree.attrs:
            return _checked(tree)
    except ArgumentError:
        raise
    except Exception as error:  # h5py, zarr and xarray raise errors of many types
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"path must be that of a whole result; {path} cannot be read: {text}. It is damaged, "
            "is being replaced, or was written by something else: read it again, restore it, or "
            "evaluate again."
        ) from None
    raise ArgumentError(
        "path",
        f" must be that of a result of bayesatk; {path} is none. Draws of your own model "
        "become one: bayesatk.from_draws(xarray.open_datatree(path), data, metrics).",
    )


def _checked(tree: xr.DataTree) -> xr.DataTree:
    """Return a result without its digest, or refuse a result that was changed."""
    digest = tree.attrs.pop(DIGEST, None)
    if digest is not None and digest != digest_of(tree):
        raise ValueError("its variables and attributes are not as they were saved")
    for name in ("method", "study", "seed", "input_sha256", *_JSON_ATTRIBUTES):
        if not isinstance(tree.attrs.get(name, ""), str):
            raise ValueError(f"its attribute {name!r} must be text; it is {tree.attrs[name]!r:.60}")
    for name in _JSON_ATTRIBUTES:
        if text := tree.attrs.get(name):
            try:
                declaration_of(text) if name == "study" else json.loads(text)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise ValueError(f"its attribute {name!r} is not whole: {error!r:.100}") from None
    return tree


def digest_of(tree: xr.DataTree) -> str:
    """Return a digest of all variables and attributes that does not depend on the storage.

    Examples
    --------
    >>> tree = xr.DataTree(xr.Dataset({"x": ("n", [1.0, 2.0])}, attrs={"note": "a"}))
    >>> same = xr.DataTree(xr.Dataset({"x": ("n", np.array([1.0, 2.0]))}, attrs={"note": "a"}))
    >>> digest_of(tree) == digest_of(same) != digest_of(tree.map_over_datasets(lambda g: g + 1))
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for group in sorted(tree.subtree, key=lambda node: node.path):
        digest.update(repr((group.path, _plain_attrs(group.attrs))).encode())
        variables = group.to_dataset(inherit=False).variables
        for name in sorted(variables, key=str):
            variable = variables[name]
            about = str(name), variable.dims, variable.shape, _plain_attrs(variable.attrs)
            digest.update(repr(about).encode("utf-8", "surrogatepass"))
            values = variable.values
            if values.dtype.kind in "biufM":
                digest.update(values.dtype.kind.encode() + np.ascontiguousarray(values).tobytes())
            else:
                texts = [str(value) for value in values.ravel().tolist()]
                digest.update(repr(texts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _plain_attrs(attrs: Mapping[Any, Any]) -> list[tuple[str, list[Any]]]:
    """Return attributes sorted by name, with values as lists of Python objects."""
    return [
        (str(name), np.asarray(value).ravel().tolist())
        for name, value in sorted(attrs.items(), key=lambda pair: str(pair[0]))
    ]


def _read(path: Path) -> xr.DataTree:
    """Return the tree in a file or folder, loaded into memory if it is not too large."""
    zarr = path.suffix == ".zarr"
    options = {"engine": "zarr", "consolidated": False} if zarr else {"engine": "h5netcdf"}
    with xr.open_datatree(path, **options) as stored:
        size = sum(group.nbytes for group in stored.subtree)
        max_bytes = max_unpacked_bytes(
            sum(file.stat().st_size for file in [path, *path.rglob("*")])
        )
        if size > max_bytes:
            raise ArgumentError(
                "path",
                f" must be that of a result of at most {max_bytes} bytes in memory; {path.name} "
                f"says {size}. Is it damaged, or made to fill the memory? If not, open it lazily: "
                "xarray.open_datatree.",
            )
        groups = {
            name: node.to_dataset(inherit=False) for name, node in stored.load().subtree_with_keys
        }
        return ResultTree.from_dict(groups)
