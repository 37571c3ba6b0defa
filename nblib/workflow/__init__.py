"""How a run happens: the command `nblib`, its subcommands, and what they keep."""
