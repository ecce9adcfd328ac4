"""The command line, ``popf`` or ``python -m popf``; it needs the extra ``popf[cli]``.

``app``       the commands, with Typer, and what a user sees when one fails; a new command is a module with a
              function of the same name, and a line in ``COMMANDS``
``options``   options that several commands have
``terminal``  what commands read and print: standard streams, notes, JSON, progress
``scoring``   a model and the table it scores

Command modules import what is heavy inside their functions, so that ``popf --help`` is quick.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from popf.formatting import install


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default the one of the process, and return the exit status.

    It is 0 for success, 2 for bad input, 130 after Ctrl-C, and 1 after any other error.
    """
    if find_spec("typer") is None:
        print(
            f"popf: the command line needs Typer, which is not installed: {install('cli')}.",
            file=sys.stderr,
        )
        return 1
    from popf.cli import app

    return app.main(sys.argv[1:] if arguments is None else list(arguments))
