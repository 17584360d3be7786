"""Every command and flag of kubectl's is here, or it is written down why not."""

from __future__ import annotations

from tests.kubectl_table import PAGE, gaps, load, our_commands, render


def test_no_command_and_no_flag_is_missing_without_a_word() -> None:
    assert gaps(load()) == []


def test_reasons_are_about_commands_that_there_are() -> None:
    table = load()
    theirs = table.flags.keys()
    assert table.commands.keys() | table.why.keys() | table.same_as.keys() <= theirs
    assert set(table.same_as.values()) <= our_commands().keys()
    unknown = [
        (command, flag)
        for command, why in table.why.items()
        for flag in why
        if flag not in table.flags[command].split()
    ]
    assert unknown == []


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text() == render(), "python -m tests.kubectl_table > docs/kubectl.md"
