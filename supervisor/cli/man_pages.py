"""Man pages, made of the parser: one of `rootlet`, and one of each command. Pure, but for importing the commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Final

import click

from supervisor.cli.main import root_context, subcommands, walk

SECTION: Final = 1


def man_pages() -> Mapping[str, str]:
    """Text by file name, such as ``rootlet-get.1``."""
    return {
        f"{found.command_path.replace(' ', '-')}.{SECTION}": "\n".join(_page(found)) for found in walk(root_context())
    }


def _page(context: click.Context) -> Iterator[str]:
    command, name = context.command, context.command_path.replace(" ", "-")
    yield f'.TH "{name.upper()}" "{SECTION}" "" "Rootlet" "User Commands"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(command.get_short_help_str(200).rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {_text(context.command_path)}"
    yield _text(" ".join(command.collect_usage_pieces(context)))
    yield ".SH DESCRIPTION"
    yield from _paragraphs(inspect.cleandoc(command.help or ""))
    yield ".SH OPTIONS"
    for param in command.get_params(context):
        if (record := param.get_help_record(context)) is not None and record[1]:
            yield from (".TP", f".B {_text(record[0])}", _text(record[1]))
    yield from _commands(context)
    if context.parent is not None:
        yield ".SH SEE ALSO"
        yield f".BR {_text(context.parent.command_path.replace(' ', '-'))} ({SECTION})"
    yield ""


def _commands(context: click.Context) -> Iterator[str]:
    below = subcommands(context)
    if below:
        yield ".SH COMMANDS"
    for child in below:
        yield ".TP"
        yield f".BR {_text(child.command_path.replace(' ', '-'))} ({SECTION})"
        yield _text(child.command.get_short_help_str(200))


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a help text; one behind the mark of click is left as it is, as examples are."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield from (".PP", ".nf", *map(_text, paragraph.splitlines()[1:]), ".fi")
        else:
            yield from (".PP", _text(" ".join(paragraph.split())))


def _text(line: str) -> str:
    """roff(7): backslashes and dashes are escaped, and so is what would be a request at a line's beginning."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
