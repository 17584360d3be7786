"""Modules without their docstrings, for processes that live long and print no help: texts that nobody reads there lie
between what is used, on pages that each process copies.

What is left is kept as byte code of its own beside Python's (PEP 488 lets names have such a tag), where that can be
written: each start of the agent imports 900 modules.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import marshal
import os
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
_TAG: Final = "nodoc1"
"""Tag in names of byte code: another one for another outcome of `without_docstrings`."""
_FLAGS: Final = bytes(4)
"""Flags of byte code that is valid by the date and size of its source (PEP 552)."""


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_filename(fullname)
        kept, header = importlib.util.cache_from_source(source, optimization=_TAG), self._header(source)
        if (found := self._kept(kept, header, source)) is not None:
            return found
        code = super().get_code(fullname)
        if code is None:
            return None
        code = without_docstrings(code)
        if not sys.dont_write_bytecode and _is_writable(os.path.dirname(kept)):
            self.set_data(kept, header + marshal.dumps(code))  # an error is none of ours
        return code

    def _header(self, source: str) -> bytes:
        """Begin of valid byte code. Raises OSError."""
        stats = self.path_stats(source)
        numbers = (int(stats["mtime"]), int(stats["size"]))
        return b"".join((importlib.util.MAGIC_NUMBER, _FLAGS, *(n.to_bytes(8, "little")[:4] for n in numbers)))

    def _kept(self, kept: str, header: bytes, source: str) -> CodeType | None:
        """Byte code of that source at that place, which an earlier process has written."""
        try:
            data = self.get_data(kept)
            code = marshal.loads(memoryview(data)[len(header) :]) if data.startswith(header) else None
        except (OSError, EOFError, ValueError, TypeError):
            return None
        return code if isinstance(code, CodeType) and code.co_filename == source else None


@functools.cache  # there are as many as packages
def _is_writable(directory: str) -> bool:
    return os.access(directory, os.W_OK) or not os.path.exists(directory)


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
