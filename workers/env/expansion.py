"""References to variables: ``$(NAME)`` in values, commands and subPathExpr.

Mirrors Expand (third_party/forked/golang/expansion/expand.go) and what pkg/kubelet/container/helpers.go makes of it.
Different on purpose: values that refer to one another can double with each reference, and what no process could be
given anyway is refused while it is made.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from workers.kubecontainer.config_error import ConfigError

MAX_EXPANSION_CHARS: Final = 32 * mmap.PAGESIZE
"""Most that the references of one text may expand to, in characters: the longest argument or variable that the kernel
gives to a process (include/uapi/linux/binfmts.h, MAX_ARG_STRLEN)."""
MAX_PROCESS_CHARS: Final = 6 << 20
"""Most that all arguments, or all variables, of one process may have, in characters: the kernel's maximum for both
together, in bytes (fs/exec.c, bprm_stack_limits: three quarters of _STK_LIM)."""

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
"""A dollar sign that is escaped by another one, or a reference."""


def expand(text: str, values: Mapping[str, str], what: str = "text") -> str:
    """The text with every ``$(NAME)`` replaced that has a value; ``$$`` becomes ``$``, all else stays as it is.

    Raises ConfigError, which calls the text ``what``, when its references expand to more than MAX_EXPANSION_CHARS.
    """
    return _replace(text, lambda name: values.get(name, f"$({name})"), what)


def expand_all(words: Iterable[str], values: Mapping[str, str], what: str = "command") -> list[str]:
    """A command or its arguments (ExpandContainerCommandAndArgs).

    Raises ConfigError as `expand`, and when all have more than MAX_PROCESS_CHARS.
    """
    expanded: list[str] = []
    left = MAX_PROCESS_CHARS
    for word in words:
        expanded.append(expand(word, values, what))
        left -= len(expanded[-1])
        if left < 0:
            raise ConfigError(f"{what}: has more than {MAX_PROCESS_CHARS} characters with its references expanded")
    return expanded


def expand_sub_path_expr(expression: str, values: Mapping[str, str]) -> str:
    """A subPathExpr (ExpandContainerVolumeMounts).

    Raises ConfigError for what has no value, or an empty one, and as `expand`.
    """
    missing: set[str] = set()

    def value_of(name: str) -> str:
        value = values.get(name, "")
        if not value:
            missing.add(name)
        return value

    expanded = _replace(expression, value_of, "subPathExpr")
    if missing:
        raise ConfigError(f"missing value for {', '.join(sorted(missing))}")
    return expanded


def _replace(text: str, value_of: Callable[[str], str], what: str) -> str:
    left = MAX_EXPANSION_CHARS

    def replacement(found: re.Match[str]) -> str:
        nonlocal left
        name = found[1]
        value = "$" if name is None else value_of(name)
        left -= len(value)
        if left < 0:
            raise ConfigError(f"{what}: its references expand to more than {MAX_EXPANSION_CHARS} characters")
        return value

    # Behind the last parenthesis nothing is a reference, and looking for the end of one would take quadratic time.
    end = text.rfind(")") + 1
    return _REFERENCE.sub(replacement, text[:end]) + text[end:].replace("$$", "$")
