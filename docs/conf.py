"""Sphinx configuration."""

import shutil
from importlib.metadata import version as package_version
from pathlib import Path

# Case studies live beside the documentation; Sphinx reads below its own folder only.
_HERE = Path(__file__).parent
shutil.copytree(_HERE.parent / "case_studies", _HERE / "case_studies", dirs_exist_ok=True)

project = "bayesatk"
author = "The bayesatk developers"
copyright = "2026, the bayesatk developers"
version = release = package_version("bayesatk")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "myst_nb",
    "numpydoc",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
numpydoc_show_class_members = False
autosummary_generate = True
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["output.css"]
html_title = "bayesatk"
