"""docs/settings.md: every setting; type, range and default of the code, the reason of the comments in the example.

A comment's first sentence says which values there are, as the code does; a test holds both against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from supervisor.config.settings import Bytes, IpAddress, Range, Seconds, Settings
from supervisor.config.settings_reload import RELOADABLE
from supervisor.config.shown_settings import shown_section
from tests.docs.reference.pages import note, plain, table

EXAMPLE: Final = Path(__file__).parents[3] / "configs" / "rootlet.yaml"
_INTRODUCTION: Final = f"""\
# Settings

{note("configs/rootlet.yaml and supervisor/config/settings.py")}
Every setting of the configuration file with its default. `rootlet config default` prints the file that this page is
made of, `rootlet config check FILE` checks one, and `rootlet config view` shows what is in effect. A dot stands between
a section and its setting: `workers.count` is `count` below `workers`.

*SIGHUP*: a reload (`rootlet reload`, or SIGHUP) changes the setting while the agent runs; every other setting needs a
restart of the agent, which the reload says. Durations are written as `1h30m`, `20s`, `500ms`; sizes are bytes or
quantities such as `1Mi`. In paths `~`, `$HOME`, `$instanceName` and the XDG directories (`$XDG_STATE_HOME` and others)
are expanded.
"""
_HEADS: Final = ("setting", "type", "values", "default", "SIGHUP", "what for")
_HEADING: Final = re.compile(r"# --- (.*?) -+$")
_KEY: Final = re.compile(r"( *)(\w+):")
_FORM: Final = re.compile(
    r"# *(?:Duration|Number|One of|Bytes|Quantity|true or false|List|Mapping|Directory|Path|Absolute path|DNS|Name of"
    r"|URL|http|Text|IP address|Port|unix|Program|auto, |slirp4netns|PulledImages|NoSwap|VersionTLS12|AlwaysAllow"
    r"|text or|debug, |Memory or|rootlessport or"
    r"|Fixed)"
)
"""How a comment begins that is of one setting: with its form. Other comments are of all settings below them."""
_TOLD: Final = re.compile(
    "duration|number|bytes|quantity|true or false|mapping|port|ip address|reloadable", re.IGNORECASE
)
"""Parts of a comment's first sentence that columns have."""
_ZEROS: Final = re.compile(r"(?<=[hm])(0m)?0s$")
_PAGE: Final = re.compile(r"\bdocs/([\w-]+)\.md")


class Setting(NamedTuple):
    name: str
    """Dotted."""
    type: str
    range: str
    """Such as ``1s to 24h``; empty where there is none."""
    choices: tuple[str, ...]
    default: str


class Comment(NamedTuple):
    name: str
    """Dotted."""
    notes: tuple[str, ...]
    """Note about all settings from here on; a heading begins with ``## ``."""
    words: str


def render() -> str:
    """The page, Markdown."""
    known = {setting.name: setting for setting in every_setting()}
    text, rows, section = [_INTRODUCTION], list[tuple[str, ...]](), ""
    for comment in comments():
        top = comment.name.partition(".")[0] if "." in comment.name else ""
        if comment.notes or top != section:
            text += _table(rows)
            rows = []
        text += (f"\n{_note(words, comment.name if comment.name not in known else '')}\n" for words in comment.notes)
        if setting := known.get(comment.name):
            rows.append(_row(setting, comment.words))
            section = top
    return "".join((*text, *_table(rows)))


def _note(words: str, section: str) -> str:
    """A heading, or what is said of a section or of the settings below."""
    return f"`{section}`: {_linked(words)}" if section and not words.startswith("## ") else _linked(words)


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    return [f"\n{table(_HEADS, rows)}"] if rows else []


def _row(setting: Setting, words: str) -> tuple[str, ...]:
    form, _, reason = words.partition(". ")
    if not reason:
        form, reason = "", words
    told = ", ".join(part for part in form.split(", ") if not _is_told(part, setting))
    values = "; ".join(filter(None, (setting.range, ", ".join(map(_choice, setting.choices)), plain(told))))
    default = f"`{setting.default}`" if setting.default else "empty"
    is_reloadable = "yes" if setting.name in RELOADABLE else ""
    return f"`{setting.name}`", setting.type, values, default, is_reloadable, _linked(reason)


def _is_told(part: str, setting: Setting) -> bool:
    """Whether another column has that part of a comment's first sentence."""
    return bool(_TOLD.fullmatch(part)) or part == setting.range or set(part.split(" or ")) <= {*setting.choices}


def _choice(value: str) -> str:
    return f"`{value}`" if value else "empty"


def _linked(words: str) -> str:
    return _PAGE.sub(r"[\1](\1.md)", plain(words))


# --- the example --------------------------------------------------------------------------------------------------


def comments() -> Iterator[Comment]:
    """Keys of the example with what is said above them, in its order. Not those of mappings that are values."""
    above: list[str] = []
    sections: list[str] = []
    for line in EXAMPLE.read_text().splitlines():
        if _HEADING.match(line):
            above = [line]
        elif line.lstrip().startswith("#"):
            above.append(line.strip())
        elif key := _KEY.match(line):
            del sections[len(key[1]) // 2 :]
            sections.append(key[2])
            yield _comment(".".join(sections), above)
            above = []
        elif above and not _HEADING.match(above[-1]):
            above.append("")


def _comment(name: str, above: list[str]) -> Comment:
    at = max((at for at, line in enumerate(above) if _FORM.match(line)), default=len(above))
    words = " ".join(line.removeprefix("# ") for line in above[at:] if line)
    return Comment(name, tuple(_notes(above[:at])), words)


def _notes(lines: list[str]) -> Iterator[str]:
    if lines and (heading := _HEADING.match(lines[0])):
        yield f"## {heading[1]}"
        lines = lines[1:]
    if words := " ".join(line.removeprefix("# ") for line in lines if line):
        yield words


# --- the code -----------------------------------------------------------------------------------------------------


def every_setting() -> list[Setting]:
    """As the file names them."""
    return list(_settings(Settings, shown_section(Settings()), ""))


def _settings(section: type[msgspec.Struct], defaults: Mapping[str, Any], prefix: str) -> Iterator[Setting]:
    hints = get_type_hints(section, include_extras=True)
    for field in msgspec.structs.fields(section):
        name, hint, default = prefix + field.encode_name, hints[field.name], defaults[field.encode_name]
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _settings(hint, default, f"{name}.")
        else:
            yield Setting(name, type_name(hint), _range(hint), _choices(hint), _default(default))


def _default(value: Any) -> str:
    match value:
        case str():
            return _short(value)
        case Bytes():
            return _quantity(value)
        case dict():
            return ", ".join(f"{key}: {item}" for key, item in value.items())
        case tuple():
            return ", ".join(value)
    return msgspec.json.encode(value).decode()


def _short(duration: str) -> str:
    """``24h`` for ``24h0m0s``."""
    return _ZEROS.sub("", duration)


def type_name(hint: Any) -> str:
    """In words, with the unit."""
    if get_origin(hint) is Annotated:
        form, *rules = get_args(hint)
        return "IP address" if any(isinstance(rule, IpAddress) for rule in rules) else type_name(form)
    origin = get_origin(hint)
    if origin in (tuple, dict):
        return "list" if origin is tuple else "mapping"
    if origin is Literal:
        return "one of"
    if origin is UnionType:
        return " or ".join(map(type_name, get_args(hint)))
    return {bool: "true or false", Seconds: "duration", Bytes: "size", int: "number", Path: "path", str: "text"}[hint]


def _choices(hint: Any) -> tuple[str, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()


def _range(hint: Any) -> str:
    form, *rules = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    ranges = (rule for rule in rules if isinstance(rule, Range))
    return next((f"{_shown(form, found.low)} to {_shown(form, found.high)}" for found in ranges), "")


def _shown(form: Any, bound: float) -> str:
    if form is Seconds:
        return _short(str(Seconds(bound)))
    return _quantity(int(bound)) if form is Bytes else str(int(bound))


def _quantity(number: int) -> str:
    return f"{number >> 20}Mi" if number >= 1 << 20 else f"{number >> 10}Ki"
