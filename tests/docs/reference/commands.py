"""docs/commands.md: every command, its options and their defaults, of the parser itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Final

import click

from supervisor.cli.main import root_context, subcommands, walk
from tests.docs.reference.pages import note, plain, table

_INTRODUCTION: Final = f"""\
# Commands

{note("supervisor/cli")}
Every command with its options. `rootlet COMMAND --help` says the same, and so do the man pages of an installed wheel.
[Beside kubectl](kubectl.md) holds each option against that of kubectl's.

A command ends with 0 when all was done, with 1 when something was not or the command was used wrongly. Ctrl-C ends it
as it ends `kubectl`: the shell says 130, and ends the loop that it was in. `exec` and `attach` end with the code of the
container's process; `run` and `config check` with 2 when the configuration is wrong; `diff` with 1 when there is a
difference and with 2 when it could not compare.

Every command has `--help`. Every command that speaks to an agent has `--socket` (the agent's admin socket; variable
`ROOTLET_SOCKET`) and `--instance` (the agent's name; variable `ROOTLET_INSTANCE`). A flag without a default is off.
"""
_EVERYWHERE: Final = frozenset({"--socket", "--instance", "--help"})
_DEFAULT: Final = re.compile(r"\s*\[default: (.*?)\]")


def render() -> str:
    """The page, Markdown."""
    return _INTRODUCTION + "".join(map(_section, every_command()))


def every_command() -> Iterator[click.Context]:
    """Every command below `rootlet`, those of groups behind their group."""
    for child in subcommands(root_context()):
        yield from walk(child)


def options(context: click.Context) -> list[click.Option]:
    """Options that not every command has."""
    every = (param for param in context.command.get_params(context) if isinstance(param, click.Option))
    return [option for option in every if not (option.hidden or _EVERYWHERE.intersection(option.opts))]


def _section(context: click.Context) -> str:
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    words = "\n\n".join(_paragraphs(inspect.cleandoc(context.command.help or "")))
    found = [_option(option, context) for option in options(context)]
    level = "##" if context.parent is not None and context.parent.parent is None else "###"
    head = f"\n{level} {context.command_path}\n\n```\n{usage}\n```\n\n{words}\n"
    return head + (f"\n{table(('option', 'default', 'what it does'), found)}" if found else "")


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a help text; one behind the mark of click stays as it is, as examples do."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```\n{inspect.cleandoc(paragraph[2:])}\n```"
        else:
            yield plain(" ".join(paragraph.split()))


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    record = option.get_help_record(context)
    assert record is not None, f"{context.command_path} {option.opts}: hidden options are not asked for"
    name, words = record
    told = _DEFAULT.search(words)
    default = told[1] if told else _default(option)
    return f"`{name}`".replace("|", "\\|"), f"`{default}`" if default else "", plain(_DEFAULT.sub("", words))


def _default(option: click.Option) -> str:
    match option.default:
        case str() | int() | float() as value if not option.is_flag:
            return str(value)
        case tuple(values):
            return ",".join(map(str, values))
    return ""
