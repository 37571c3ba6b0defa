"""The subcommands of `nblib`, a module each: `HELP`, `add_arguments(parser)` and `run(arguments)`.

What is slow to import is imported in `run`, so that `nblib --help` answers at once.
"""
