"""The command line: `python -m nblib.report quick`."""

import argparse
import sys

from nblib import report, results


def main() -> None:
    """Build the site of a run; messages instead of tracebacks for whatever the caller can mend."""
    parser = argparse.ArgumentParser(prog="python -m nblib.report", description=report.__doc__.splitlines()[0])
    parser.add_argument("scale")
    try:
        index = report.build(parser.parse_args().scale)
    except (report.ReportError, results.ResultsError, FileNotFoundError, PermissionError) as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(f"Open {index}\n")


if __name__ == "__main__":
    main()
