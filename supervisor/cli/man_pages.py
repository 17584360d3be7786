"""Man pages, made of the parser: one of `rootlet`, and one of each command. Pure, but for importing the commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Final

import click

from supervisor.cli.main import rootlet

SECTION: Final = 1


def man_pages() -> Mapping[str, str]:
    """Text by file name, such as ``rootlet-get.1``."""
    context = click.Context(rootlet, info_name="rootlet", **rootlet.context_settings)
    return {f"{found.command_path.replace(' ', '-')}.{SECTION}": "\n".join(_page(found)) for found in _walk(context)}


def _walk(context: click.Context) -> Iterator[click.Context]:
    """The command and all below it."""
    yield context
    for child in _children(context):
        yield from _walk(child)


def _children(context: click.Context) -> list[click.Context]:
    group = context.command
    if not isinstance(group, click.Group):
        return []
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [click.Context(command, info_name=name, parent=context) for name, command in found if command is not None]


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
    children = _children(context)
    if children:
        yield ".SH COMMANDS"
    for child in children:
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
