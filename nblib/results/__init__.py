"""What the papers print, what we got, and how it is shown.

`schema` is the one results table; `published` the papers' numbers; `exhibits` summarises a run exhibit by exhibit; `tables` and
`plotting` show; `outputs` writes what a notebook leaves; `report` is the site for reviewers.
"""

from nblib.results.schema import COLUMNS, KEY, STATUSES, ResultsError, coverage, expected, load, row, save, scoreboard

__all__ = ["COLUMNS", "KEY", "STATUSES", "ResultsError", "coverage", "expected", "load", "row", "save", "scoreboard"]
