"""The one gate through which a text becomes HTML: nothing that comes out of here can run, load or style anything.

The tables of executed notebooks contain sentences of data sets and models. Only an
allow-list of elements passes (bleach), without styles, scripts, pictures and events.
"""

import re
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import bleach
from bs4 import BeautifulSoup, Tag
from latex2mathml.converter import convert
from markupsafe import Markup, escape
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, String

ELEMENTS = {
    "a", "b", "blockquote", "br", "caption", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4",
    "h5", "h6", "hr", "i", "ins", "li", "mark", "ol", "p", "pre", "s", "small", "span", "strong", "sub", "summary", "sup",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul",
    "math", "mfrac", "mi", "mn", "mo", "mover", "mrow", "msqrt", "msub", "msubsup", "msup", "mtext", "munder", "munderover",
}  # fmt: skip
READ = {
    "href",
    "colspan",
    "rowspan",
    "display",
    "stretchy",
}  # attributes taken from the source; the others are set here
ATTRIBUTES = {
    "*": ["id", "class"], "a": ["href", "aria-label"], "td": ["colspan", "rowspan"], "th": ["colspan", "rowspan", "scope"],
    "div": ["role", "tabindex", "aria-label"], "math": ["display"], "mo": ["stretchy"],
}  # fmt: skip
NUMBER = re.compile(r"[+−-]?\d[\d,]*(\.\d+)?( ?%)?|[–-]?")
MARKED = {Comment: "c", Keyword: "k", String: "s"}  # tokens of code and their classes in style.css

SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {  # what matplotlib draws with; no script, link, animation, picture from elsewhere or foreign language
    "svg", "g", "defs", "metadata", "style", "title", "clipPath", "pattern", "path", "use", "rect", "text", "tspan", "image",
}  # fmt: skip
ABOUT = re.compile(
    r"\{http://(www\.w3\.org/1999/02/22-rdf-syntax-ns|creativecommons\.org/ns)#\}|\{http://purl\.org/dc/"
)
OUTSIDE = re.compile(r"url\((?!#)|@import|expression\(|javascript:", re.IGNORECASE)
PICTURE = re.compile(r"#|data:image/png;base64,")
REMEMBERED = 4096  # texts: a report that grows is made again and again, of cells that are mostly the same


def inert_svg(file: Path) -> str:
    """The text of an SVG that is a picture and nothing else; "" where it could run, load or link to something.

    A page shows it by `<img>`, where nothing in it runs; but a reader may also open it on its own.
    """
    try:
        text = file.read_text(encoding="utf-8")
        elements = [] if "<!ENTITY" in text or "<?" in text[5:] else list(ElementTree.fromstring(text).iter())
    except (OSError, ValueError, ElementTree.ParseError):
        return ""
    return text if elements and all(map(_is_inert, elements)) else ""


def _is_inert(element: ElementTree.Element) -> bool:
    known = element.tag.removeprefix(SVG) in SHAPES if element.tag.startswith(SVG) else ABOUT.match(element.tag)
    for name, value in element.items():
        name = name.rpartition("}")[2].lower()
        if name.startswith("on") or OUTSIDE.search(value) or (name == "href" and not PICTURE.match(value)):
            return False
    return bool(known) and not (element.tag == f"{SVG}style" and OUTSIDE.search(element.text or ""))


@lru_cache(REMEMBERED)
def clean(html: str) -> Markup:
    """HTML from an output with what can do harm removed and what a reader needs added: scopes of headers, the alignment of
    numbers, ids of headings, a box that scrolls around each table."""
    soup = BeautifulSoup(html, "html.parser")
    for bar in soup("progress"):
        (bar.find_parent("div") or bar).decompose()  # with its clock
    for element in soup(["style", "script", "template", "title"]):
        element.decompose()
    for element in soup(True):
        element.attrs = {name: value for name, value in element.attrs.items() if name in READ}
        if re.fullmatch("h[1-6]", element.name):
            title = element.get_text()
            element["id"] = anchor(title)
            if element.name != "h1":
                link = {"class": "anchor", "href": f"#{element['id']}", "aria-label": f"Link to {title}"}
                element.append(soup.new_tag("a", attrs=link, string="#"))
    for table in soup("table"):
        _prepare(table)
        heads = [cell.get_text(strip=True) for cell in table.select("thead th")]
        caption = table.caption.get_text() if table.caption else f"Table: {', '.join(heads)}"
        box = {"class": "table", "role": "region", "tabindex": "0", "aria-label": caption}
        table.wrap(soup.new_tag("div", attrs=box))
    return Markup(bleach.clean(str(soup), tags=ELEMENTS, attributes=ATTRIBUTES, strip=True))


def anchor(heading: str) -> str:
    """The id of a heading."""
    return re.sub(r"\W+", "-", heading).strip("-").lower()


def _prepare(table: Tag) -> None:
    for space in table.find_all(string=str.isspace):  # a line for each row: what changed shows in a comparison
        space.replace_with("" if space.parent.name == "tr" else "\n")
    rows = [cells for row in table("tr") if (cells := row.find_all(["td", "th"]))]
    if rows and not table.thead and all(cell.name == "th" for cell in rows[0]):
        table.insert(1 if table.caption else 0, BeautifulSoup("<thead></thead>", "html.parser"))
        table.thead.append(rows[0][0].parent.extract())
    for cell in table("th"):
        if not cell.get_text(strip=True):
            cell.name = "td"  # heads nothing
            continue
        cell["scope"] = "col" if cell.find_parent("thead") else "row"
    for column in zip(*(row for row in rows if len(row) == len(rows[-1])), strict=True):
        body = [cell for cell in column if cell.name == "td"]
        if body and all(NUMBER.fullmatch(cell.get_text().strip()) for cell in body):
            for cell in column:
                cell["class"] = "n"


class _Renderer(IPythonRenderer):
    """Equations as MathML, which browsers show without a script; a `$` in a line stays a sign of money."""

    def block_math(self, body: str) -> str:
        try:
            return convert(body, display="block")
        except Exception:  # latex2mathml has an error class for each mistake, and no common one
            return super().block_math(body)


@lru_cache(REMEMBERED)
def markdown(source: str) -> Markup:
    """A Markdown text with its `$$` equations; HTML inside it stays visible as text."""
    return clean(MarkdownWithMath(renderer=_Renderer(escape=True, exclude_anchor_links=True)).render(source))


def inline(source: str) -> Markup:
    """One paragraph of Markdown without the paragraph around it."""
    return Markup(re.sub(r"^<p>|</p>\s*$", "", markdown(source).strip()))


def breakable(name: str) -> Markup:
    """A name that may break after its underscores."""
    return escape(name).replace("_", Markup("_<wbr>"))


@lru_cache(REMEMBERED)
def code(source: str) -> Markup:
    """Python with its keywords, strings and comments marked."""
    tokens = PythonLexer(stripnl=False, ensurenl=False).get_tokens(source)
    runs = groupby(tokens, key=lambda token: next((name for kind, name in MARKED.items() if token[0] in kind), ""))
    texts = [(name, "".join(text for _, text in run)) for name, run in runs]
    return Markup().join(
        Markup('<i class="{}">{}</i>').format(name, text) if name else escape(text) for name, text in texts
    )


def terminal(text: str) -> Markup:
    """What was printed, without a terminal's colours."""
    return escape(strip_ansi(text))
