"""The command line, ``popf`` or ``python -m popf``.

``app``     the commands, with Typer; a new one is a module with a function, and a line in ``COMMANDS``
``errors``  what a person sees when something goes wrong, and the exit status
``plain``   what works without the extra ``popf[cli]``

Command modules import what is heavy inside their functions, so that ``popf --help`` is quick.
"""

from collections.abc import Sequence
from importlib.util import find_spec


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the status with which the process should end.

    Parameters
    ----------
    arguments : list of str, default=None
        None for those of the process.

    Returns
    -------
    int
        0 if all went well, 2 after bad input, 130 after Ctrl-C, 1 after any other error.
    """
    if find_spec("typer") is None:
        from popf.cli import plain

        return plain.main(arguments)
    from popf.cli import app

    return app.main(arguments)
