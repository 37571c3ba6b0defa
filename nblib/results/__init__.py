"""What the papers print, what we measured, and how the two are shown side by side."""

from nblib.results.measurements import COLUMNS, KEY, ResultsError, load, record, save

__all__ = ["COLUMNS", "KEY", "ResultsError", "load", "record", "save"]
