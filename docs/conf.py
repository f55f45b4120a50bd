"""How the documentation is built: ``make docs``. No network, and warnings are errors."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

from pegfan import __version__  # noqa: E402

project = "pegfan"
author = "The pegfan developers"
copyright = f"{author}. MIT licence"  # noqa: A001
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    # Ours, in _extensions.
    "mathml",
    "commands",
    "drawings",
    "links",
]
exclude_patterns = ["_build"]
language = "en"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
math_numfig = False
html_math_renderer = "mathml"
highlight_language = "none"

default_role = "py:obj"  # single backticks of docstrings name objects and parameters; see _extensions/links.py
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    "ArrayLike": "ArrayLike",
    "FloatArray": "ndarray",
    "IntArray": "ndarray",
}
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = False  # types in docstrings are words for people, not names to look up
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

nitpicky = True
# Sphinx looks these up in the inventories of other projects, which are on the network. The names alone say enough.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|scipy|torch|torch_geometric|matplotlib|pandas|pd|networkx|pygsp|optuna|joblib)(\..*)?"),
    (r"py:.*", r"(collections|typing|types|os|pathlib|abc|dataclasses|concurrent|datetime|enum)\..*"),
    (r"py:class", r"pegfan\.channels\.order\.NodeOrder"),  # what is computed where; users have no use for it
    (r"py:class", r"names\.Group"),  # four words; sphinx does not look an alias up where it is used
    (r"py:class", r"pegfan\.channels\.labels\.Beliefs"),  # what a second stage sees, likewise
    (r"py:exc", r"pegfan\.training\.loop\.Unfinished"),  # a kind of Diverged that the search answers, likewise
    (r"py:class", r"pegfan\.large\.(channels\.Block|reading\.LargeTables)"),  # what is read from disk, likewise
    (r"py:class", r"pegfan\.auto\.classifier\.AutoModel"),  # either of two classes that are documented
    (r"py:class", r"TypeAliasForwardRef"),  # how Sphinx names an alias that may be None
]

html_theme = "furo"
html_title = "pegfan"
html_static_path = ["_static"]
html_css_files = ["pegfan.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0072b2",
        "color-brand-content": "#00639b",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    },
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#6cb8e6"},
}

suppress_warnings = ["ref.footnote"]  # a References section need not be cited in its docstring


def list_results(app, docname, source):
    """Fill in what `pegfan reproduce` wrote: the list of tables, which must not be empty, and the pictures."""
    if docname != "results":
        return
    tables, pictures = (sorted((HERE / "results").glob(pattern)) for pattern in ("*.md", "*.png"))
    text = source[0]
    if not tables:
        text = text.replace(text[text.index("```{toctree}") :], "There are none in this checkout yet.\n")
    shown = [f"![{picture.stem.replace('-', ' ')}](results/{picture.name})" for picture in pictures]
    source[0] = "\n\n".join([text, *(["## Figures", *shown] if shown else [])])


def setup(app):
    """Register with Sphinx."""
    app.connect("source-read", list_results)
