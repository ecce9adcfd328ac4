"""The commands, with Typer."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from popf import __version__
from popf.cli.errors import INTERRUPTED, guarded
from popf.cli.messages import in_words_of_options

#: One module a command, with a function of the same name.
COMMANDS = (
    *("fit", "predict", "evaluate", "explain", "report", "info", "monitor", "convert"),
    *("sample", "reproduce", "demo"),
)

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
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Optimum-path forest classification, with probabilities."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _name in COMMANDS:
    _module = import_module(f"popf.cli.{_name}")
    app.command(_name, epilog=getattr(_module, "EXAMPLES", None))(getattr(_module, _name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the status with which the process should end."""
    return guarded(_call, arguments, _reworded)


def _reworded(words: list[str], sentence: str) -> str:
    """Put an error of the library into the options of the command that was called."""
    command: Any = typer.main.get_command(app)
    called = next((command.commands[word] for word in words if word in command.commands), None)
    if called is None:
        return sentence
    options = {
        str(option.name): next(name for name in option.opts if name.startswith("--"))
        for option in called.params
        if option.param_type_name == "option"
    }
    return in_words_of_options(sentence, options)


def _call(words: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        status: Any = command.main(args=words, prog_name="popf", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        # The usage errors of click, which some versions of Typer bring along and others import.
        if not hasattr(error, "format_message"):
            raise
        raise ValueError(error.format_message()) from error
    if status == INTERRUPTED:  # Typer turns Ctrl-C into this
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0
