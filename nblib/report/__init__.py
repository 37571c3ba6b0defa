"""The executed notebooks of a run as a small static site that opens from the file system, offline: `make report`.

`executed` finds and reads the notebooks, `markup` is the one gate through which a text becomes HTML, `content` turns cells
into what a page shows, `site` writes the folder. `python -m nblib.report quick` is the command line.
"""

from nblib.report.executed import ReportError
from nblib.report.site import build

__all__ = ["ReportError", "build"]
