"""The executed notebooks of a run as a small static site that opens from the file system, offline: `nblib report quick`.

`executed` finds and reads the notebooks, `markup` is the one gate through which a text becomes HTML, `content` turns cells
into what a page shows, `items` has each system's answers, to be compared item by item; `front` is the index,
`site` writes the folder; `summary` says in a line what an executed notebook found, or why it failed.
"""

from nblib.results.report.executed import ReportError
from nblib.results.report.site import build
from nblib.results.report.summary import failure, headline

__all__ = ["ReportError", "build", "failure", "headline"]
