"""Sphinx configuration."""

import os
import shutil
import sys
from importlib.metadata import version as package_version
from pathlib import Path

# Case studies live beside the documentation; Sphinx reads below its own folder only.
_HERE = Path(__file__).parent
shutil.copytree(_HERE.parent / "case_studies", _HERE / "case_studies", dirs_exist_ok=True)

sys.path.insert(0, str(_HERE / "_extensions"))

project = "bayesatk"
author = "The bayesatk developers"
copyright = "2026, the bayesatk developers"
version = release = package_version("bayesatk")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "myst_nb",
    "numpydoc",
    "sphinx_design",
    "offline_math",
    "navigation",
    "notebooks",
    "printed_tables",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_code_prompt_show = "Show the code"  # of cells with the tag hide-input
nb_code_prompt_hide = "Hide the code"
numpydoc_show_class_members = False
default_role = "py:obj"  # `bayesatk.evaluate` in a docstring is a link
autosummary_generate = True
# Links to other projects' pages need their inventories from the network; a build that is not
# asked for them neither waits nor warns, and shows the same names without links.
intersphinx_mapping = {
    name: (url, None)
    for name, url in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "pandas": "https://pandas.pydata.org/docs/",
        "xarray": "https://docs.xarray.dev/en/stable/",
        "arviz": "https://python.arviz.org/en/stable/",
        "pymc": "https://www.pymc.io/projects/docs/en/stable/",
    }.items()
    if os.environ.get("BAYESATK_LINKS")
}
exclude_patterns = ["_build", "paper"]  # the paper is Pandoc's Markdown
html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_extra_path = ["llms.txt"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_title = "bayesatk"
html_show_sourcelink = False
html_sidebars = {"**": ["site-navigation"]}
html_theme_options = {
    # The sidebar lists every page, so the bar at the top need not repeat them.
    "navbar_center": [],
    "navbar_align": "right",
    "navbar_end": ["theme-switcher"],
    "article_header_end": ["notebook-link"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}


def setup(app):
    """Let links to and from case studies, written for the repository, lead to the copies."""
    app.connect("source-read", _to_the_copies)


def _to_the_copies(app, page, source):
    source[0] = (
        source[0]
        .replace("](../case_studies/", "](case_studies/")
        .replace("](../../docs/", "](../../")
    )
