"""What the pages on the command line show is what happens: their commands are run, their outputs compared."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from table_commands import facts, printed, refused

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTSIDE = ("git", "pip", "cd")


def sessions(page):
    """Yield every command of a page with the output it shows."""
    for block in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        command, shown = None, []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command, "\n".join(shown)
                command, shown = line[2:], []
            else:
                shown.append(line)
        yield command, "\n".join(shown)


def printed_by(words, capsys):
    if words[0] == "head":
        lines = Path(words[2]).read_text(encoding="utf-8").splitlines()
        return "\n".join(lines[: int(words[1][1:])])
    assert words[0] == "popf", words
    return printed(capsys, *words[1:]).out


@pytest.mark.parametrize("page", ["start.md", "monitoring.md"])
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    check = doctest.OutputChecker()
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    count = 0
    for command, shown in sessions(page):
        words = shlex.split(command)
        if words[0] in OUTSIDE:
            continue
        got = printed_by(words, capsys)
        # A line of dots stands for any lines, also a first one.
        wanted = re.sub(r"(?m)^\.\.\.$", "...", shown)
        assert check.check_output(wanted.strip(), got.strip(), flags), f"{command}\n{got}"
        count += 1
    assert count >= 4


def test_json_has_the_keys_that_the_page_names(tmp_path, monkeypatch, capsys):
    from popf.cli.app import COMMANDS

    monkeypatch.chdir(tmp_path)
    commands = [
        "sample",
        "fit consumers.csv --target stolen --id consumer -o model.popf",
        "predict model.popf new.csv -o scored.csv",
        "rank model.popf new.csv --budget 50",
        "evaluate model.popf test.csv",
        "explain model.popf new.csv --row 3",
        "info model.popf",
        "monitor model.popf months.csv --id consumer --time month",
        "report model.popf test.csv -o report.html",
        "convert new.csv new.tsv",
        "reproduce --datasets synthetic3 --methods opf --runs 1 --n-jobs 1 --no-figures",
    ]
    assert {command.split()[0] for command in commands} == {*COMMANDS} - {"demo"}
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    for command in commands:
        found = facts(capsys, *command.split())
        name = command.split()[0]
        assert f"`popf {name}" in text
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert [key for key in found if f"`{key}`" not in row] == [], name


def test_sample_replaces_nothing(tmp_path, capsys):
    (tmp_path / "new.csv").write_text("mine")
    assert "is there already" in refused(capsys, "sample", tmp_path)
    assert (tmp_path / "new.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
