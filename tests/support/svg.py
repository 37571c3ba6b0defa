"""The texts of a saved figure and the boxes they fill, measured in the font it was drawn with."""

import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from matplotlib.transforms import Affine2D, Bbox

TEXT = "{http://www.w3.org/2000/svg}text"
SHIFT = {"start": 0.0, "middle": -0.5, "end": -1.0}
ROTATE = re.compile(r"rotate\(([-\d.]+) ([-\d.]+) ([-\d.]+)\)")
TRANSLATE = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\)(?: rotate\(([-\d.]+)\))?")
TOUCHING = 1, 2  # points of width and height by which boxes may overlap: letters don't fill theirs


def text_boxes(svg: Path) -> list[tuple[str, Bbox]]:
    """Each text of a figure with its box, in points."""
    found = []
    for element in ElementTree.parse(svg).getroot().iter(TEXT):
        text, style = "".join(element.itertext()).strip(), element.get("style", "")
        size, bold = re.search(r"([\d.]+)px", style), "700" in style or "bold" in style
        font = FontProperties(family="DejaVu Sans", size=float(size[1]) if size else 10, weight=700 if bold else 400)
        width, height, descent = TextToPath().get_text_width_height_descent(text, font, ismath=False)
        anchor = re.search(r"text-anchor: (\w+)", style)
        left = float(element.get("x", 0)) + width * SHIFT[anchor[1] if anchor else "start"]
        box = Bbox.from_bounds(left, float(element.get("y", 0)) - height + descent, width, height)
        turned, moved = (pattern.search(element.get("transform", "")) for pattern in (ROTATE, TRANSLATE))
        if turned:
            angle, x, y = map(float, turned.groups())
            box = box.transformed(Affine2D().rotate_deg_around(x, y, angle))
        elif moved:
            x, y, angle = (float(part or 0) for part in moved.groups())
            box = box.transformed(Affine2D().rotate_deg(angle).translate(x, y))
        found.append((text, box))
    return [(text, box) for text, box in found if text]


def overlapping(svg: Path) -> list[tuple[str, str]]:
    """Pairs of texts of a figure of which one covers the other."""
    pairs = []
    for (one, first), (other, second) in combinations(text_boxes(svg), 2):
        both = Bbox.intersection(first, second)
        if both is not None and both.width > TOUCHING[0] and both.height > TOUCHING[1]:
            pairs.append((one, other))
    return pairs
