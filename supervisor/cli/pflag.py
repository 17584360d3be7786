"""Spellings of flags that hands know from kubectl (github.com/spf13/pflag), in those that click knows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click

_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))
"""Values of a flag that is on or off (strconv.ParseBool)."""


def normalized(command: click.Command, arguments: Sequence[str]) -> list[str]:
    """``-o=wide`` as ``-owide``, ``--watch=true`` as ``--watch``, ``--watch=false`` left out. What follows ``--`` stays
    as it is, and what follows the first argument of a command that takes the rest for somebody else's."""
    options = {name: param for param in command.params if isinstance(param, click.Option) for name in _names(param)}
    interspersed = command.context_settings.get("allow_interspersed_args", command.allow_interspersed_args)
    found = list(_normalized(arguments, options, ends_at_argument=not interspersed))
    if not isinstance(command, click.Group):
        return found
    at = next((number for number, word in enumerate(found) if not word.startswith("-")), None)
    inner = None if at is None else command.commands.get(found[at])
    return found if at is None or inner is None else [*found[: at + 1], *normalized(inner, found[at + 1 :])]


def _names(option: click.Option) -> Sequence[str]:
    return (*option.opts, *option.secondary_opts)


def _normalized(
    arguments: Sequence[str], options: Mapping[str, click.Option], *, ends_at_argument: bool
) -> Iterator[str]:
    words = iter(arguments)
    for word in words:
        if word == "--" or (ends_at_argument and not word.startswith("-")):
            yield word
            break
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is not None and not equals and _takes_value(option):
            yield word
            yield from itertools.islice(words, 1)  # its value, whatever it looks like
        elif option is None or not equals:
            yield word
        elif not _takes_value(option):
            yield from _switch(option, name, value, word)
        else:
            yield word if name.startswith("--") else f"{name}{value}"
    yield from words


def _takes_value(option: click.Option) -> bool:
    return not option.is_flag and not option.count


def _switch(option: click.Option, name: str, value: str, word: str) -> Iterator[str]:
    if value in _TRUE:
        yield name
    elif value in _FALSE:
        yield from option.secondary_opts[:1]
    else:
        yield word  # click says that the flag takes no such value
