"""What the papers print, what we measured, and how the two are shown side by side.

`measurements` is the one table of scores; `published` the papers' numbers; `answers` says which measurement answers which printed
cell, and `comparison` joins them into the scoreboard; `granularity` asks which n a printed percentage can have. `exhibits`
summarises a run exhibit by exhibit; `tables` and `plotting` show; `outputs` writes what a notebook leaves; `report` makes the
site.
"""

from nblib.results.comparison import coverage, expected, reproduced, scoreboard
from nblib.results.measurements import COLUMNS, KEY, ResultsError, load, row, save

__all__ = [
    "COLUMNS", "KEY", "ResultsError", "coverage", "expected", "load", "reproduced", "row", "save", "scoreboard",
]  # fmt: skip
