"""The executed notebooks of a run as a small static site that opens from the file system, offline: `nblib report quick`.

`executed` finds and reads the notebooks, `markup` is the one gate through which a text becomes HTML, `content` turns cells
into what a page shows, `site` writes the folder.
"""

from nblib.results.report.executed import ReportError
from nblib.results.report.site import build

__all__ = ["ReportError", "build"]
