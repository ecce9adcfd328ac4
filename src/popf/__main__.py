"""The command line: ``python -m popf demo``."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version


def parser() -> argparse.ArgumentParser:
    """Build the parser of ``python -m popf``."""
    top = argparse.ArgumentParser(
        prog="python -m popf",
        description="Optimum-path forest classification for scikit-learn.",
    )
    top.add_argument("--version", action="version", version=f"popf {version('popf')}")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    commands.add_parser(
        "demo",
        help="classify scikit-learn's breast-cancer data and explain one prediction",
        description="Classify scikit-learn's breast-cancer data with an optimum-path forest, "
        "beside 1-nearest neighbour and logistic regression, and explain one prediction.",
    )
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the status with which the process should end."""
    top = parser()
    command = top.parse_args(arguments).command
    if command is None:
        top.print_help()
        return 0
    # The data sets and classifiers that the demo compares are not needed to print help.
    from popf.demo import demo

    try:
        print(demo())
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
