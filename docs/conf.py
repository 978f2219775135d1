"""Sphinx configuration."""

from importlib.metadata import version as package_version

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
nb_execution_mode = "off"
numpydoc_show_class_members = False
autosummary_generate = True
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_title = "bayesatk"
