"""Words for what goes wrong before a command does its work, or beside it: wrong usage, files, streams."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from typing import Final

import click

from supervisor.cli.configuration import EXIT_CONFIG
from supervisor.cli.suggestions import did_you_mean

_CHOICES: Final = re.compile(r"(?P<value>'.*') is not one of (?P<choices>'.*')\.", re.DOTALL)
_NO_NUMBER: Final = re.compile(r"'(?P<value>.*)' is not a valid (?P<kind>integer|float)( range)?\.", re.DOTALL)
_OUT_OF_RANGE: Final = re.compile(r"(?P<value>\S+) is not in the range (?P<range>\S+)\.")
_NO_COMMAND: Final = re.compile(r"No such command '(?P<word>.*)'\.?", re.DOTALL)
_NUMBERS: Final = {"integer": "a whole number", "float": "a number"}
EXIT_FAILURE: Final = 1
ENDS_FOR_GOOD: Final = frozenset({("run",), ("config", "check")})
"""Commands whose wrong use has the exit code of a wrong configuration."""
COMPARES: Final = ("diff",)
"""The command whose exit code 1 says that something is different: its errors have a higher one, as kubectl's."""
EXIT_TROUBLE: Final = 2
_SHORTHAND: Final = 2
"""Length of ``-x``."""
_OF_FILES: Final[Mapping[int, str]] = {
    errno.ENOENT: "no such file or directory",
    errno.EACCES: "this user may not read or change it",
    errno.EPERM: "this user may not do that",
    errno.EISDIR: "it is a directory",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.ELOOP: "too many symbolic links lead there, perhaps in a circle",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the quota of disk space is used up",
    errno.EROFS: "the file system is read-only",
    errno.EMFILE: "this process has too many files open (ulimit -n)",
    errno.ENFILE: "the system has too many files open",
    errno.EIO: "the device has an input/output error",
    errno.ENOMEM: "there is not enough memory",
}
_OF_OUTPUTS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF})
"""Numbers with which writing fails when the file is open already, which no longer has a name then."""


def file_words(error: OSError) -> str:
    """``/etc/shadow: this user may not read it``: the file, where the error names one, and the reason."""
    reason = _OF_FILES.get(error.errno or 0) or error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    if error.errno == errno.ENOENT:
        return "the working directory does not exist any more: cd into one that does"
    return f"the output cannot be written: {reason}" if error.errno in _OF_OUTPUTS else reason


def usage_words(error: click.ClickException) -> str:
    """kubectl's sentence for a wrong use of the command, and where its help is."""
    context = getattr(error, "ctx", None)
    sentence = "error: " + _sentence(error, context)
    return f"{sentence}\nSee '{context.command_path} --help' for usage." if context is not None else sentence


def _sentence(error: click.ClickException, context: click.Context | None) -> str:
    match error:
        case click.NoSuchOption():
            return _unknown_flag(error.option_name, context)
        case click.MissingParameter():
            return _missing(error, context)
        case click.BadOptionUsage() if "requires" in error.message and "argument" in error.message:
            return f"flag needs an argument: {error.option_name}"
        case click.BadOptionUsage() if "does not take a value" in error.message:
            return f"flag takes no value: {error.option_name}"
        case click.BadParameter():
            return _bad_value(error, context)
    if context is not None and (unknown := _NO_COMMAND.match(error.message)):
        group = context.command
        known = group.list_commands(context) if isinstance(group, click.Group) else ()
        return f'unknown command "{unknown["word"]}" for "{context.command_path}"{did_you_mean(unknown["word"], known)}'
    return error.message.rstrip(".").replace("Got unexpected extra argument", "unexpected argument")


def usage_code(error: click.UsageError) -> int:
    """Exit code of a wrong use: kubectl's, but of what systemd starts the one after which it does not try again."""
    words = error.ctx.command_path.split()[1:] if error.ctx is not None else []
    if tuple(words) == COMPARES:
        return EXIT_TROUBLE
    return EXIT_CONFIG if tuple(words) in ENDS_FOR_GOOD else EXIT_FAILURE


def _unknown_flag(name: str, context: click.Context | None) -> str:
    if len(name) == _SHORTHAND:
        return f"unknown shorthand flag: {name[1:]!r} in {name}"
    return f"unknown flag: {name}{did_you_mean(name, _flags(context))}"


def _flags(context: click.Context | None) -> Iterator[str]:
    for param in context.command.get_params(context) if context is not None else ():
        yield from (name for name in (*param.opts, *param.secondary_opts) if name.startswith("--"))


def _missing(error: click.MissingParameter, context: click.Context | None) -> str:
    param = error.param
    if param is None:
        return error.message
    if isinstance(param, click.Option):
        return f'required flag "{_long(param)}" not set'
    usage = context.command.collect_usage_pieces(context) if context is not None else []
    command = f": {context.command_path} {' '.join(usage)}" if context is not None else ""
    return f"{param.make_metavar(context) if context is not None else param.name} must be given{command}"


def _bad_value(error: click.BadParameter, context: click.Context | None) -> str:
    hint = _long(error.param) if isinstance(error.param, click.Option) else (error.param_hint or "")
    said = _of_value(error.message)
    if not hint:
        return said
    return f"{hint} {said}" if said != error.message.rstrip(".") else f"{hint}: {said}"


def _of_value(message: str) -> str:
    """click's sentence about a value, in plain words."""
    if found := _CHOICES.fullmatch(message):
        value, known = found["value"].strip("'"), [name for name in re.findall(r"'([^']*)'", found["choices"]) if name]
        return f'"{value}": must be one of {", ".join(known)}{did_you_mean(value, known)}'
    if found := _NO_NUMBER.fullmatch(message):
        return f'"{found["value"]}": must be {_NUMBERS[found["kind"]]}'
    if found := _OUT_OF_RANGE.fullmatch(message):
        return f"{found['value']}: must be {_range(found['range'])}"
    return message.rstrip(".")


def _range(text: str) -> str:
    """Words for click's ``1<=x<=5`` or ``x>=0``."""
    low, _, high = text.partition("<=x<=")
    return f"{low} to {high}" if high else f"{low.removeprefix('x>=')} or more"


def _long(param: click.Parameter) -> str:
    return max(param.opts, key=len)
