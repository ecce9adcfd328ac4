"""The command line without the extra ``popf[cli]``: the demo, help and the version."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from popf import __version__
from popf.cli.errors import guarded

MISSING = 'needs Typer and Rich, which are not installed: pip install "popf[cli]".'


def parser() -> argparse.ArgumentParser:
    """Build the parser."""
    top = argparse.ArgumentParser(
        prog="popf",
        description="Optimum-path forest classification, with probabilities.",
        epilog='All other commands come with pip install "popf[cli]".',
    )
    top.add_argument("--version", action="version", version=f"popf {__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    demo = commands.add_parser("demo", help="a quick reproduction of the paper's experiment")
    demo.add_argument("--out", type=Path, default=Path("popf-demo"), help="folder for the report")
    demo.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the status with which the process should end."""
    return guarded(_call, arguments)


def _call(words: list[str]) -> int:
    top = parser()
    known = {"demo", *(word for word in words if word.startswith("-"))}
    if words and words[0] not in known:
        raise ValueError(f"{words[0]} {MISSING}")
    try:
        options = top.parse_args(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    if options.command is None:
        top.print_help()
        return 0
    from popf.cli.demonstration import demo

    return demo(options.out, options.json)
