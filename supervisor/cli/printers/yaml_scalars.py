"""Scalars of YAML as kubectl writes them: plain where that reads back as the same text, else quoted. Pure.

The rules are goyaml.v2's, which kubectl has by sigs.k8s.io/yaml: encode.go (stringv) says what has to be quoted, as it
would read as something else, emitterc.go (yaml_emitter_analyze_scalar) which characters need it. Quoted are, besides,
texts that only other readers of YAML 1.1 take for something else (PyYAML's resolver), and escaped is what steers a
terminal, which kubectl prints as it is.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from ipc.host.text.safe_text import safe_text

_ESCAPES: Final = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}
_FIRST_OF_MANY_BYTES: Final = "\U00010000"
"""From here on go-yaml escapes."""
_EXPONENT_FROM: Final = 1e21
_WORDS: Final = frozenset(
    (
        *("", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "<<", "="),
        *("true", "True", "TRUE", "false", "False", "FALSE", "on", "On", "ON", "off", "Off", "OFF"),
        *(".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"),
    )
)
"""Texts that read as booleans, null, numbers that are none, a merge or a default."""
_NUMBER: Final = re.compile(
    r"""[-+]? (?: (?: \.[0-9]+ | [0-9]+ (?:\.[0-9]*)? ) (?:[eE][-+]?[0-9]+)?
                | 0[xX][0-9a-fA-F]+ | 0[oO][0-7]+ | 0[bB][01]+ )""",
    re.VERBOSE,
)
"""Integers and floats, with underscores left out."""
_ODD_NUMBER: Final = re.compile(r"[-+]?(?:[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|0[xb]_+)")
"""Sexagesimals, and numbers without digits, as PyYAML reads them."""
_TIMESTAMP: Final = re.compile(
    r"""[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
        (?: (?:[Tt]|[ \t]+) [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2} (?:\.[0-9]*)?
            (?: [ \t]* (?: Z | [-+][0-9]{1,2} (?::?[0-9]{2})? ) )? )?""",
    re.VERBOSE,
)
_PLAIN_WORD: Final = re.compile(r"[A-Za-z_/$(][!-~]*(?<!:)")
"""Most texts: without a space only the beginning and the end matter. Some of the words are among them."""
_NOT_PLAIN: Final = re.compile(
    r"""\A(?:[#,\[\]{}&*!|>'"%@`]|[-?:](?:\ |\Z)|---|\.\.\.|\ )|:(?:\ |\Z)|\ (?:\#|\Z)""", re.X
)
_CONTROL: Final = re.compile(r"[^ -~]")
_IN_QUOTES: Final = re.compile(r'["\\]|[^ -~]')
_NOT_LITERAL: Final = re.compile(r" (?:\n|\Z)")


@functools.lru_cache(maxsize=8192)
def written_text(text: str) -> str:
    """A text on one line, as it stands behind a key: plain, in single quotes or in double ones."""
    if _PLAIN_WORD.fullmatch(text):
        return f'"{text}"' if text in _WORDS else text
    if not _shows(text):
        return _in_double_quotes(text)
    if _reads_as_another(text):
        return f'"{text}"'
    if _NOT_PLAIN.search(text):
        quoted = text.replace("'", "''")
        return f"'{quoted}'"
    return text


def written_lines(text: str, indent: int) -> str:
    """A text of several lines as literal, with its lines behind so many spaces; quoted where no literal can hold it."""
    if _NOT_LITERAL.search(text) or not _shows(text.replace("\n", "")):
        return _in_double_quotes(text)
    lines = text.removesuffix("\n").split("\n")
    end = "-" if not text.endswith("\n") else "" if lines[-1] else "+"
    pad = " " * indent
    beginning = "2" if text[0] in " \n" else ""
    return "\n".join((f"|{beginning}{end}", *(pad + line if line else "" for line in lines)))


def written_number(value: object) -> str:
    """A number, a boolean or None."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _written_float(value) if isinstance(value, float) else str(value)


def _written_float(value: float) -> str:
    """As Go's format %g, with a point where YAML 1.1 would take an exponent for text without one."""
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    if value.is_integer() and abs(value) < _EXPONENT_FROM:
        return str(int(value))
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def _shows(text: str) -> bool:
    """Whether all of it may stand as it is."""
    if text.isascii():
        return not _CONTROL.search(text)
    return "\t" not in text and "\n" not in text and max(text) < _FIRST_OF_MANY_BYTES and safe_text(text) == text


def _reads_as_another(text: str) -> bool:
    """Whether it would be taken for a number, a date, a boolean or null if it stood plain."""
    if text in _WORDS:
        return True
    if text[0] not in "+-.0123456789":
        return False
    plain = text.replace("_", "") if "_" in text else text
    return bool(_NUMBER.fullmatch(plain) or _TIMESTAMP.fullmatch(text) or _ODD_NUMBER.fullmatch(text))


def _in_double_quotes(text: str) -> str:
    """Halves of surrogate pairs become question marks."""
    writable = text if text.isascii() else text.encode(errors="replace").decode()
    return f'"{_IN_QUOTES.sub(_escaped, writable)}"'


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char > "\x9f" and _shows(char):
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
