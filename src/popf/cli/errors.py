"""Errors as one line a person can act on, with an exit status that means something."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence

from popf.cli.messages import say

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130


def guarded(
    command: Callable[[list[str]], int | None],
    arguments: Sequence[str] | None,
    reworded: Callable[[list[str], str], str] | None = None,
) -> int:
    """Call a command line with its arguments, and turn what it raises into a line and a status.

    Parameters
    ----------
    command : callable
        Gets the arguments without ``--debug``, which is understood anywhere.
    arguments : list of str or None
        None for those of the process.
    reworded : callable, default=None
        Gets the arguments and the sentence of an error, and gives the sentence to print.

    Returns
    -------
    int
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    given = [word for word in words if word != "--debug"]
    try:
        return int(command(given) or 0)
    except KeyboardInterrupt:
        return _say("interrupted.", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read the output has gone (as `head` does); nothing may be written any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if debug:
            traceback.print_exc()
            return status_of(error)
        line = sentence(error)
        return _say(line if reworded is None else reworded(given, line), status_of(error))


def status_of(error: BaseException) -> int:
    """Give the exit status for an error: 2 if the input was at fault, else 1.

    Examples
    --------
    >>> from popf.cli.errors import status_of
    >>> status_of(ValueError("train_size is 2")), status_of(ImportError("no matplotlib"))
    (2, 1)
    """
    if isinstance(error, ValueError | TypeError | LookupError | OSError):
        return BAD_INPUT
    return FAILED


def sentence(error: BaseException) -> str:
    """Make one line of an error's message.

    Examples
    --------
    >>> from popf.cli.errors import sentence
    >>> sentence(KeyError("no column 'y'"))
    "no column 'y'"
    >>> sentence(ZeroDivisionError())
    'ZeroDivisionError'
    >>> sentence(FileNotFoundError(2, "No such file or directory", "model.popf"))
    'model.popf: no such file or directory.'
    """
    if isinstance(error, OSError) and error.strerror:
        # str() would begin with the number of the error.
        reason = error.strerror[:1].lower() + error.strerror[1:].rstrip(".") + "."
        return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"
    # str() of a KeyError quotes its message.
    first = error.args[0] if len(error.args) == 1 else str(error)
    return " ".join(str(first).split()) or type(error).__name__


def _say(line: str, status: int) -> int:
    say(line)
    return status
