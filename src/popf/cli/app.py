"""The Typer application, and one-line error messages."""

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
    *("fit", "predict", "rank", "evaluate", "explain", "report", "info", "monitor", "drift"),
    *("convert", "sample", "reproduce", "demo"),
)
FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="popf",
    help="Optimum-path forest classification with calibrated probabilities.",
    add_completion=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"popf {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: bool = option(
        False, "Show the version and exit.", "--version", callback=_show_version, is_eager=True
    ),
    debug: bool = option(False, "Show the full traceback of errors.", "--debug"),
) -> None:
    """Optimum-path forest classification with calibrated probabilities."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _name in COMMANDS:
    _module = import_module(f"popf.cli.{_name}")
    app.command(_name, epilog=getattr(_module, "EXAMPLES", None))(getattr(_module, _name))


def main(arguments: list[str]) -> int:
    """Run one command and return the exit status; ``--debug`` is accepted at any position."""
    words = [word for word in arguments if word != "--debug"]
    command: Any = typer.main.get_command(app)
    try:
        with plain_warnings():
            status = command.main(args=words, prog_name="popf", standalone_mode=False)
        if status == INTERRUPTED:  # Typer turns Ctrl-C into this
            raise KeyboardInterrupt
        sys.stdout.flush()  # so that write errors are raised here
        return status if isinstance(status, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted.")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        _discard_stdout()
        return FAILED
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        else:
            called = next((command.commands[w] for w in words if w in command.commands), None)
            say(with_options(sentence(error), _options(called)))
        # Usage errors are click's, which some versions of Typer vendor and others import.
        usage = hasattr(error, "format_message")
        expected = ValueError | TypeError | LookupError | OSError
        disk_error = isinstance(error, OSError) and error.errno in DISK_ERRORS
        if disk_error:
            try:
                sys.stdout.flush()
            except OSError:  # Python would flush again at exit, and fail again
                _discard_stdout()
        return BAD_INPUT if usage or (isinstance(error, expected) and not disk_error) else FAILED


def _discard_stdout() -> None:
    """Discard all further standard output, including the flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _options(command: Any) -> dict[str, str]:
    """Map the parameters of a command to its options."""
    return {
        parameter.name: next(name for name in parameter.opts if name.startswith("--"))
        for parameter in getattr(command, "params", ())
        if parameter.param_type_name == "option"
    }


def sentence(error: BaseException) -> str:
    """Return the message of an error as one line."""
    if hasattr(error, "format_message"):
        words = " ".join(error.format_message().split())
        # Some versions of Typer name the expected type but not the given value.
        refused: list[Any] = getattr(error.__cause__, "errors", list)()
        return f"{words}, not {refused[0]['input']!r}." if refused else words
    if isinstance(error, OSError) and error.strerror:
        # str() would begin with the error number.
        reason = error.strerror[:1].lower() + error.strerror[1:].rstrip(".") + "."
        return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"
    # str() of a KeyError quotes its message.
    message = error.args[0] if len(error.args) == 1 else error
    # Only list items keep their line breaks.
    lines = [" ".join(part.split()) for part in str(message).split("\n- ")]
    return "\n- ".join(lines) or type(error).__name__
