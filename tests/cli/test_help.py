"""What the commands say of themselves: help, and the keys of their JSON."""

from pathlib import Path

from popf.__main__ import main
from table_commands import QUICK, facts, refused

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def test_every_command_has_help_with_examples_and_json(capsys):
    from popf.cli.app import COMMANDS

    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        said = capsys.readouterr().out
        assert ("--json" in said) == (name != "demo")
        if name not in ("reproduce", "demo"):
            assert f"Examples:\n    popf {name}" in said


def test_without_the_extra_one_line_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("popf.cli.find_spec", lambda name: None)
    for words in ([], ["demo"], ["--version"]):
        assert 'pip install "popf[cli]"' in refused(capsys, *words, status=1)


def test_json_has_the_keys_that_the_page_names(tmp_path, monkeypatch, capsys):
    from popf.cli.app import COMMANDS

    monkeypatch.chdir(tmp_path)
    commands = [
        "sample",
        f"fit consumers.csv --target stolen --id consumer {' '.join(QUICK)} -o model.popf",
        "predict model.popf new.csv -o scored.csv",
        "rank model.popf new.csv --budget 50",
        "evaluate model.popf test.csv",
        "explain model.popf new.csv --row 3",
        "info model.popf",
        "monitor model.popf months.csv --id consumer --time month",
        "drift model.popf test.csv",
        "report model.popf test.csv -o report.html",
        "convert new.csv new.tsv",
        "reproduce --datasets synthetic3 --methods opf --runs 1 --n-jobs 1 --no-figures",
    ]
    assert {command.split()[0] for command in commands} == {*COMMANDS} - {"demo"}
    text = PAGE.read_text(encoding="utf-8")
    for command in commands:
        found = facts(capsys, *command.split())
        name = command.split()[0]
        assert f"`popf {name}" in text
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert [key for key in found if f"`{key}`" not in row] == [], name
