"""NevIR's ids: a pair's id ends in CondaQA's kind of edit (`PassageEditID`), which says how the second document came about."""

EDITS = {"2": "scope of the negation changed", "3": "negation undone"}
