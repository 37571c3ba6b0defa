"""Hostile pieces of markup, and what of a page is active."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urlsplit

from nblib.results.report import markup

PIECES = [
    "<script>", "</script>", "<img src=x onerror=c()>", "<svg/onload=c()>", "<style>", "</style>", "<iframe srcdoc='", "<math>",
    "<a href='javascript:c()'>", "<a href=\"java&#115;cript:c()\">", "<a href=' data:text/html,<script>'>", "</a>", "<table>",
    "<td onclick=c()>", "<tr>", "<th>", "</table>", "<!--", "-->", "<![CDATA[", "]]>", "<template>", "</template>", "<noscript>",
    "<p title=\"</noscript><img src=x onerror=c()>\">", "<form action=x>", "<base href=//x>", "<meta http-equiv=refresh>",
    "<progress>", "<div>", "</div>", "<h2>", "</h2>", "&lt;script&gt;", "&#60;script&#62;", "&", "\"", "'", "`", "<", ">", "/",
    "\n", "[x](javascript:c())", "[x]: javascript:c()", "![x](javascript:c())", "<javascript:c()>", "$$<img onerror=c()>$$", "**",
    "|-|", "\x00", "\u2028", "\x1b[31m", "\ufeff", "<caption>", "<textarea>", "<title>", "<xmp>", "<plaintext>",
]  # fmt: skip
HARMLESS = {"http", "https", "mailto", ""}


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def active(html: str) -> Iterator[str]:
    """The elements and attributes of a page that could run, load or lead anywhere else."""
    allowed = markup.ELEMENTS | {"wbr"}
    for tag, attributes in Elements(html).found:
        if tag not in allowed:
            yield tag
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "src", "srcdoc", "action", "formaction"):
                yield f"{tag} {name}"
            if name == "href" and urlsplit(re.sub(r"[\x00-\x20]", "", value or "")).scheme not in HARMLESS:
                yield f"{tag} {value}"
