"""The command line, ``popf`` or ``python -m popf``; needs the extra ``popf[cli]``.

``app``       the Typer application and its error messages; to add a command, write a module with a function
              of the same name and list it in ``COMMANDS``
``options``   options shared by several commands
``terminal``  input and output: standard streams, notes, JSON, progress
``scoring``   a model and the table that it scores, shared by several commands

Command modules import heavy packages inside their functions, to keep ``popf --help`` fast.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from popf.formatting import install


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default from ``sys.argv``, and return the exit status.

    The status is 0 for success, 2 for bad input, 130 after Ctrl-C, and 1 for any other error.
    """
    if find_spec("typer") is None:
        print(
            f"popf: the command line needs Typer, which is not installed: {install('cli')}.",
            file=sys.stderr,
        )
        return 1
    from popf.cli import app

    return app.main(sys.argv[1:] if arguments is None else list(arguments))
