"""Choice of the lines that are written: a level, and others for single areas.

An area is a room of the agent, or a module, by its dotted name without the package or wing: ``pleg``, ``loop``,
``api_server.http_log``. Its level is that of the loggers of this name and of everything below it, in all packages.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.log.formats import DEBUG_V
from ipc.host.text.safe_text import safe_line

LEVELS: Final = ("debug", "info", "warning", "error")
DEFAULT: Final = "default"
"""In place of an area's level: that of all others."""
MAX_V: Final = 10
MAX_AREAS: Final = 32
"""Most areas with a level of their own."""

_PACKAGES: Final = ("supervisor", "workers", "ipc", "ipc.link", "ipc.k8s", "ipc.host")
"""What an area's name is below: packages, and the wings of `ipc`."""
_ROOT: Final = Path(__file__).parents[3]
_AREA: Final = re.compile(r"[a-z][a-z0-9_]{0,30}(\.[a-z][a-z0-9_]{0,30}){0,2}")
_MAX_SHOWN_BYTES: Final = 64
_NUMBERS: Final = logging.getLevelNamesMapping()


class Verbosity(msgspec.Struct, frozen=True):
    """The level of all lines, and those of areas."""

    level: str = "info"
    areas: Mapping[str, str] = {}

    @property
    def words(self) -> tuple[str, ...]:
        """``info``, ``pleg=debug``: the level of everything, and those of areas in alphabetical order."""
        return self.level, *(f"{area}={level}" for area, level in sorted(self.areas.items()))

    def changed(self, area: str, level: str) -> Verbosity:
        """Verbosity with another level of that area, or of everything when ``area`` is empty. Raises ValueError."""
        if area:
            if problem := area_problem(area):
                raise ValueError(problem)
            others = {name: text for name, text in self.areas.items() if name != area}
            added = {} if level == DEFAULT else {area: level_named(level)}
            if len(others) + len(added) > MAX_AREAS:
                raise ValueError(f"at most {MAX_AREAS} areas may have a level of their own")
            return Verbosity(self.level, others | added)
        return Verbosity(level_named(level), self.areas)


def level_named(text: str) -> str:
    """One of LEVELS, by its name or by klog's number: from 4 on that is debug. Raises ValueError."""
    if text in LEVELS:
        return text
    if text.isascii() and text.isdigit() and len(text) <= len(str(MAX_V)) and int(text) <= MAX_V:
        return "debug" if int(text) >= DEBUG_V else "info"
    shown = safe_line(text, _MAX_SHOWN_BYTES)
    raise ValueError(f"{shown!r} is no level: it must be one of {', '.join(LEVELS)}, or a number from 0 to {MAX_V}")


def area_problem(area: str) -> str:
    """Why that is no area; empty when it is one."""
    if _AREA.fullmatch(area):
        path = area.replace(".", "/")
        for package in _PACKAGES:
            place = _ROOT / package.replace(".", "/") / path
            if place.is_dir() or place.with_suffix(".py").is_file():
                return ""
    shown = safe_line(area, _MAX_SHOWN_BYTES)
    return f"{shown!r} is no area: it must be a room of the agent, such as pleg, loop or libpod, or a module of one"


def apply(verbosity: Verbosity) -> None:
    """Have this process log so, whatever it, or its parent before the fork, was told earlier."""
    wanted = {f"{package}.{area}": level for area, level in verbosity.areas.items() for package in _PACKAGES}
    known = logging.getLogger().manager.loggerDict.items()
    for name, logger in [(name, made) for name, made in known if name.partition(".")[0] in _PACKAGES]:
        if isinstance(logger, logging.Logger) and name not in wanted:
            _set(logger, logging.NOTSET)
    _set(logging.getLogger(), _NUMBERS[verbosity.level.upper()])
    for name, level in wanted.items():
        _set(logging.getLogger(name), _NUMBERS[level.upper()])


def _set(logger: logging.Logger, level: int) -> None:
    """Setting a level makes every logger forget what it has found out, and each process applies what it was born
    with."""
    if logger.level != level:
        logger.setLevel(level)
