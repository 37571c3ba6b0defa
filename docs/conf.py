"""How Sphinx makes a run's site from `docs/` and executed notebooks; `nblib report` calls it. The site needs no network."""

from docutils import nodes
from latex2mathml.converter import convert

project = html_title = "Negation blindness in text embeddings"
extensions = ["myst_nb"]
nb_execution_mode = "off"  # the notebooks are shown as they ran
nb_output_stderr = "remove"  # bars and warnings
nb_code_prompt_show, nb_code_prompt_hide = "Show code", "Hide code"
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = myst_dmath_allow_digits = False  # "$5 or $10" is money
myst_heading_anchors = 3
html_theme = "sphinx_book_theme"
html_theme_options = {"navbar_persistent": [], "use_fullscreen_button": False, "footer_content_items": []}
html_static_path = html_css_files = ["site.css"]
html_math_renderer = "mathml"


def write_math(translator, node) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    translator.body.append(convert(node.astext(), display="block" if isinstance(node, nodes.math_block) else "inline"))
    raise nodes.SkipNode


def setup(app) -> None:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
