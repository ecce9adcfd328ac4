"""What the commands say of themselves: help and completion."""

import os
import subprocess
import sys

import pytest

from popf.__main__ import main

pytest.importorskip("typer", reason="the command line needs popf[cli]")


def test_every_command_has_help_with_examples_and_json(capsys):
    from popf.cli.app import COMMANDS

    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        said = capsys.readouterr().out
        assert ("--json" in said) == (name != "demo")
        if name not in ("reproduce", "demo"):
            assert f"Examples:\n    popf {name}" in said


def test_help_imports_nothing_heavy_beyond_the_package_itself():
    code = (
        "import sys, popf; before = set(sys.modules); from popf.cli import main; main(['--help']);"
        "new = set(sys.modules) - before;"
        "heavy = 'numpy sklearn pandas numba rich matplotlib popf.tables popf.engine'.split();"
        "print([name for name in heavy if name in new], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_completion_is_offered():
    environment = {**os.environ, "_POPF_COMPLETE": "source_bash", "_TYPER_COMPLETE_TEST": "1"}
    code = "import sys; from popf.cli import main; sys.exit(main([]))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "complete" in done.stdout
    assert "popf" in done.stdout


def test_without_the_extra_one_line_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("popf.cli.find_spec", lambda name: None)
    for words in ([], ["demo"], ["--version"]):
        assert main(words) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.endswith(
            'pip install "popf[cli]", or pip install ".[cli]" in a clone of popf.\n'
        )
        assert said.err.count("\n") == 1
