"""The command line. Worker processes import this too, so that everything heavy is imported where it is used."""

import sys

from bakeoff.errors import BakeoffError


def main() -> None:
    """Run the command line: 0 done, 1 some runs failed, 2 something that the user can put right, 130 Ctrl-C."""
    from bakeoff.cli.app import app

    try:
        app(prog_name="bakeoff")
    except BakeoffError as error:
        print(f"bakeoff: {error}", file=sys.stderr)
        sys.exit(2)
