"""What the papers print, what we measured, and how the two are shown side by side.

`measurements` is the one table of scores, `words` what people read for its keys; `published` the printed numbers; `scoreboard`
joins the two, and `granularity` asks which n a printed percentage can have. `exhibits` summarises a run exhibit by exhibit,
`matrix` by system and benchmark; `tables` and `plotting` show; `outputs` writes what a notebook leaves; `report` makes the site.
"""

from nblib.results.measurements import COLUMNS, KEY, ResultsError, load, record, save

__all__ = ["COLUMNS", "KEY", "ResultsError", "load", "record", "save"]
