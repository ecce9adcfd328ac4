"""The commands, with Typer; and errors as one line that a user can act on."""

import os
import sys
import traceback
from importlib import import_module
from typing import Any

import typer

from popf import __version__
from popf.cli.options import option
from popf.cli.terminal import plain_warnings, say
from popf.files import DISK_ERRORS
from popf.formatting import with_options

#: One module per command, with a function of the same name.
COMMANDS = (
    *("fit", "predict", "rank", "evaluate", "explain", "report", "info", "monitor"),
    *("convert", "sample", "reproduce", "demo"),
)
FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="popf",
    help="Optimum-path forest classification, with probabilities.",
    add_completion=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"popf {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: bool = option(
        False, "Show the version.", "--version", callback=_show_version, is_eager=True
    ),
    debug: bool = option(False, "Show the traceback of an error.", "--debug"),
) -> None:
    """Optimum-path forest classification, with probabilities."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _name in COMMANDS:
    _module = import_module(f"popf.cli.{_name}")
    app.command(_name, epilog=getattr(_module, "EXAMPLES", None))(getattr(_module, _name))


def main(arguments: list[str]) -> int:
    """Run one command, and return the exit status; ``--debug`` may stand anywhere."""
    words = [word for word in arguments if word != "--debug"]
    command: Any = typer.main.get_command(app)
    try:
        with plain_warnings():
            status = command.main(args=words, prog_name="popf", standalone_mode=False)
        if status == INTERRUPTED:  # Typer turns Ctrl-C into this
            raise KeyboardInterrupt
        sys.stdout.flush()  # what goes wrong there is found here
        return status if isinstance(status, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted.")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output is gone, as `head` does
        _write_no_more()
        return FAILED
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        else:
            called = next((command.commands[w] for w in words if w in command.commands), None)
            say(with_options(sentence(error), _options(called)))
        # Usage errors are click's, which some versions of Typer bring along and others import.
        usage = hasattr(error, "format_message")
        expected = ValueError | TypeError | LookupError | OSError
        full = isinstance(error, OSError) and error.errno in DISK_ERRORS
        if full:
            try:
                sys.stdout.flush()
            except OSError:  # the process would try once more at its end, and complain again
                _write_no_more()
        return BAD_INPUT if usage or (isinstance(error, expected) and not full) else FAILED


def _write_no_more() -> None:
    """Let nothing reach the standard output any more, not even at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _options(command: Any) -> dict[str, str]:
    """Name the option of every parameter of a command."""
    return {
        parameter.name: next(name for name in parameter.opts if name.startswith("--"))
        for parameter in getattr(command, "params", ())
        if parameter.param_type_name == "option"
    }


def sentence(error: BaseException) -> str:
    """Make one line of an error's message."""
    if hasattr(error, "format_message"):
        words = " ".join(error.format_message().split())
        # Some versions of Typer tell what a value should be, but not what it is.
        refused: list[Any] = getattr(error.__cause__, "errors", list)()
        return f"{words}, not {refused[0]['input']!r}." if refused else words
    if isinstance(error, OSError) and error.strerror:
        # str() would begin with the number of the error.
        reason = error.strerror[:1].lower() + error.strerror[1:].rstrip(".") + "."
        return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"
    # str() of a KeyError quotes its message.
    message = error.args[0] if len(error.args) == 1 else error
    # Only a list keeps its lines.
    lines = [" ".join(part.split()) for part in str(message).split("\n- ")]
    return "\n- ".join(lines) or type(error).__name__
