"""Modules without their docstrings, for processes that live long and print no help: texts that nobody reads there lie
between what is used, on pages that each process copies."""

from __future__ import annotations

import importlib.machinery
import sys
from types import CodeType
from typing import Final

_FUNCTION: Final = 0x3
"""Flags of a function's code: CO_OPTIMIZED and CO_NEWLOCALS."""
_HAS_DOCSTRING: Final = 0x4000000
"""CO_HAS_DOCSTRING, from 3.14 on. Before, the first constant of a function without a docstring is no text."""

_LAST_INDEX: Final = 1
"""Highest index of a docstring among the constants: each start of the agent looks through those of 700 modules."""
_NAMES_OF_CLASS: Final = ("__name__", "__module__", "__qualname__", "__doc__")
"""Names that the code of a class with a docstring uses first, up to 3.12."""


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        return None if code is None else without_docstrings(code)


def leave_out() -> None:
    """Leave docstrings out of all modules that are found on `sys.path` from now on, in this process and its forks.

    Assertions stay.
    """
    hook = importlib.machinery.FileFinder.path_hook(
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (_Loader, importlib.machinery.SOURCE_SUFFIXES),
        (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
    )
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def without_docstrings(code: CodeType) -> CodeType:
    """The same code, where ``__doc__`` is None of the module and all that it defines; nested as deep as the source."""
    constants: list[object] | None = None
    for index, constant in enumerate(code.co_consts):
        made: CodeType | None
        if type(constant) is CodeType:
            made = without_docstrings(constant)
        elif index <= _LAST_INDEX and isinstance(constant, str) and _is_docstring(code, index):
            made = None
        else:
            continue
        if made is not constant:
            constants = constants or list(code.co_consts)
            constants[index] = made
    return code if constants is None else code.replace(co_consts=tuple(constants))


def _is_docstring(code: CodeType, index: int) -> bool:
    """Whether the text at that index is one: the first constant of a function or module, in a class after its name."""
    if code.co_flags & _FUNCTION:
        if sys.version_info >= (3, 14) and not code.co_flags & _HAS_DOCSTRING:
            return False
        return index == 0 and not code.co_name.startswith("<")  # lambdas and comprehensions have none
    if code.co_name == "<module>":
        return index == 0 and code.co_names[:1] == ("__doc__",)
    # From 3.13 on the line of a class is between, in some versions as a constant: there they keep theirs.
    return index == 1 and code.co_names[:4] == _NAMES_OF_CLASS
