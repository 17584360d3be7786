"""Files of variables that a container has left in a volume for others: ``NAME='value'``, a small part of the shell's
language.

Mirrors ParseEnv (pkg/kubelet/util/env/env_util.go). Different on purpose: a file has at most MAX_ENV_FILE_BYTES.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from workers.userns.read import read_volume_file
from workers.userns.unshare import Unshare, UnshareError

MAX_ENV_FILE_BYTES: Final = 1 << 20
"""As large as a ConfigMap may be."""
_BLANKS: Final = " \t"


class EnvFileError(Exception):
    """The file cannot be read as one of variables. The text is for people and has nothing of what is in the file."""


class EnvFile(msgspec.Struct, frozen=True):
    """Variables of one file, up to where it is wrong. Its repr has no values: they may be secrets."""

    values: Mapping[str, str]
    """The first one of each name."""
    problem: str = ""
    """Reason for which reading has ended."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.values))})"

    def value(self, key: str) -> str:
        """Value of a variable; empty when the file has no such variable, or an empty one. Raises EnvFileError for a
        fault of the file that stands before it."""
        if key not in self.values and self.problem:
            raise EnvFileError(self.problem)
        return self.values.get(key, "")


def read_env_file(volume: Path, path: str, unshare: Unshare, *, in_memory: bool = False) -> EnvFile:
    """The file at that path below ``volume``. Blocks. Raises EnvFileError, OSError."""
    try:
        data = read_volume_file(volume, path, MAX_ENV_FILE_BYTES + 1, unshare, in_memory=in_memory)
    except UnshareError as error:
        raise EnvFileError(str(error)) from error
    if len(data) > MAX_ENV_FILE_BYTES:
        raise EnvFileError(f"larger than {MAX_ENV_FILE_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise EnvFileError("not UTF-8") from None
    return parse_env_file(text)


def parse_env_file(text: str) -> EnvFile:
    """One pass, whoever asks for which variable."""
    values: dict[str, str] = {}
    try:
        for name, value in _variables(text):
            values.setdefault(name, value)
    except EnvFileError as error:
        return EnvFile(values, str(error))
    return EnvFile(values)


def _variables(text: str) -> Iterator[tuple[str, str]]:
    lines = _Lines(text)
    for line in lines:
        line = line.lstrip(_BLANKS)
        if not line or line.startswith("#"):
            continue
        name, value = _split(line, lines.number)
        yield name, _quoted(value, lines) if value.lstrip(_BLANKS) == value else ""


class _Lines(Iterator[str]):
    """As bufio.ScanLines has them, and the number of the one that came last."""

    def __init__(self, text: str) -> None:
        self._lines = iter(text.removesuffix("\n").split("\n") if text else ())
        self.number = 0

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        return line.removesuffix("\r")


def _split(line: str, number: int) -> tuple[str, str]:
    """Texts before and behind the equals sign."""
    name, equals, value = line.partition("=")
    if not equals:
        raise _invalid(number, "missing '='")
    if not name.rstrip(_BLANKS):
        raise _invalid(number, "empty variable name")
    if name.rstrip(_BLANKS) != name:
        raise _invalid(number, "whitespace before '=' is not allowed")
    return name, value


def _quoted(value: str, lines: _Lines) -> str:
    """Text within the quotation marks, however many lines that takes. A value that a blank separates from the equals
    sign is, as in a shell, not the variable's."""
    begun = lines.number
    if not value.startswith("'"):
        raise _invalid(begun, "value must be enclosed in single quotes")
    parts, rest = [], value[1:]
    while "'" not in rest:
        parts.append(rest)
        following = next(lines, None)
        if following is None:
            raise EnvFileError(f"invalid environment variable format starting at line {begun}: unclosed single quote")
        rest = following
    last, _, behind = rest.partition("'")
    if behind.lstrip(_BLANKS)[:1] not in ("", "#"):
        raise _invalid(lines.number, "unexpected content after closing quote")
    return "\n".join((*parts, last))


def _invalid(number: int, what: str) -> EnvFileError:
    return EnvFileError(f"invalid environment variable format at line {number}: {what}")
