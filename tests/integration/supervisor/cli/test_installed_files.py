"""Files that are installed beside the program: man pages, completions, configuration, documentation."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from supervisor.cli.completion_scripts import SCRIPTS
from supervisor.cli.installed_files import IN_CHECKOUT, installed_file
from supervisor.cli.main import COMMANDS
from supervisor.cli.man_pages import man_pages
from tests.support.cli import ROOT, run_here


def test_every_command_has_a_page_that_man_can_show(tmp_path: Path) -> None:
    pages = man_pages()
    names = {name for commands in COMMANDS.values() for name in commands}
    assert {f"rootlet-{name}.1" for name in names} | {"rootlet.1"} <= set(pages)
    for name, text in pages.items():
        assert text.startswith(f'.TH "{name.removesuffix(".1").upper()}" "1"')
        assert "\b" not in text
    if groff := shutil.which("groff"):
        done = subprocess.run(
            [groff, "-man", "-Tascii", "-wall"],
            input="".join(pages.values()),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_completion_prints_the_script_that_is_installed(shell: str) -> None:
    assert run_here("completion", shell).out == SCRIPTS[shell].text
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=SCRIPTS[shell].text, text=True, check=True)


def test_the_wheel_has_every_file_under_the_name_by_which_it_is_found() -> None:
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {name: f"supervisor/share/{shared}" for shared, name in IN_CHECKOUT.items()} == included["force-include"]
    for shared in IN_CHECKOUT:
        assert installed_file(shared).exists()


def test_the_annotated_configuration_is_valid_as_it_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "rootlet.yaml"
    file.write_text(run_here("config", "default").out)
    assert run_here("config", "check", str(file)).out == f"{file}: valid\n"


def test_pages_are_printed_and_suggested() -> None:
    assert run_here("docs", "probes").out.rstrip("\n") == (ROOT / "docs" / "probes.md").read_text().rstrip("\n")
    assert "probes " in run_here("docs").out
    assert run_here("docs", "prob").err == 'error: there is no page "prob": did you mean "probes"?\n'
