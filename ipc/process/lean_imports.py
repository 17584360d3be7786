"""Libraries without what they would import or keep and an agent need not have: OpenSSL until somebody wants TLS, the
parser of Python's source until somebody looks into it, a copy of what Python's own typing has, names of files.

OpenSSL and the module `ssl` are 1.6 MiB of anonymous pages that all processes share, and as much of the library's own
pages, for hashes that Python can make itself and for names that uvloop takes of `ssl` when it is imported.

Every part of a path that pathlib takes apart goes into Python's table of names, and leaves a hole there when it is
gone. A process that has met 1500 of them has a table of its own, of 0.9 MiB.
"""

from __future__ import annotations

import _locale
import contextlib
import functools
import importlib
import importlib.util
import sys
import threading
import types
from collections.abc import Awaitable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

OPENSSL_HASHES: Final = "_hashlib"
OWN_HASHES: Final = ("_md5", "_sha1", "_sha2" if sys.version_info >= (3, 12) else "_sha256", "_sha3", "_blake2")
"""Modules with Python's own implementations. A distribution may have left them out."""
TYPING_EXTENSIONS: Final = "typing_extensions"
SSL: Final = "ssl"
INSPECT: Final = "inspect"
MSGSPEC_INSPECT: Final = "msgspec.inspect"
LOCALE: Final = "locale"
COMPRESSION: Final = ("bz2", "lzma")
"""Modules that shutil imports for archives of files."""
PATHLIB: Final = ("pathlib", "pathlib._local")
"""Modules of pathlib with code that interns, in one version or another."""
LATE_ERRORS: Final = ("SSLWantReadError", "SSLSyscallError", "SSLZeroReturnError")
"""Exceptions that uvloop and asyncio name in their ``except`` clauses as they have found them."""
_SSL_ERROR: Final = {"SSL_ERROR_WANT_READ": 2, "SSL_ERROR_WANT_WRITE": 3, "SSL_ERROR_SYSCALL": 5}
"""As OpenSSL numbers them (SSL_get_error(3))."""


def import_libraries() -> None:
    """Import pathlib, hashlib, msgspec, asyncio and uvloop that way. Of others what is imported already stays as it is.

    The first attribute that anybody asks `ssl` for loads all of it, in that process; its TLS is uvloop's, as ever.
    """
    importlib.import_module("pathlib")
    for name in PATHLIB:
        if "sys" in vars(sys.modules.get(name, object)):
            vars(sys.modules[name])["sys"] = _SysWithoutIntern()
    if all(importlib.util.find_spec(name) is not None for name in OWN_HASHES):
        with absent(OPENSSL_HASHES):
            importlib.import_module("hmac")
    for name, known in _KNOWN.items():
        if name not in sys.modules and (spec := importlib.util.find_spec(name)) is not None:
            sys.modules[name] = _Late(spec, known)
    with contextlib.ExitStack() as without:
        for name in COMPRESSION:
            without.enter_context(absent(name))
        importlib.import_module("shutil")
    with absent(TYPING_EXTENSIONS):
        _leave_out_inspection()
        importlib.import_module("msgspec")
    if SSL not in sys.modules and (spec := importlib.util.find_spec(SSL)) is not None:
        late = sys.modules[SSL] = _LateSsl(spec)
        with late.names_for_uvloop():
            importlib.import_module("uvloop")


def _leave_out_inspection() -> None:
    """A part of msgspec that describes types to people, until somebody asks it."""
    package = importlib.util.find_spec("msgspec")
    if package is None or MSGSPEC_INSPECT in sys.modules:
        return
    if (spec := PathFinder.find_spec(MSGSPEC_INSPECT, package.submodule_search_locations)) is not None:
        sys.modules[MSGSPEC_INSPECT] = _Late(spec, {})


def is_ssl_loaded() -> bool:
    return "_ssl" in sys.modules


@contextlib.contextmanager
def absent(name: str) -> Iterator[None]:
    """Hide a module while a library is imported that takes it only where it is installed."""
    known = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]  # how the import system is told that there is none
    try:
        yield
    finally:
        if known is None:
            del sys.modules[name]
        else:
            sys.modules[name] = known


class _SysWithoutIntern:
    """`sys` for pathlib."""

    def __getattr__(self, name: str) -> object:
        return getattr(sys, name)

    def intern(self, part: str) -> str:
        return part


class _Late(ModuleType):
    """A module until an attribute of it is asked for that is not known."""

    __spec__: ModuleSpec

    def __init__(self, spec: ModuleSpec, known: Mapping[str, object]) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self.__loader__ = spec.loader
        self.__file__ = spec.origin
        self.__dict__["_late_lock"] = threading.RLock()
        self.__dict__["_late"] = True
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self.__dict__["_late_lock"]:
            if self.__dict__.pop("_late", False):
                try:
                    self._load()
                except BaseException:  # such as no file that can be opened: the next one who asks may be luckier
                    self.__dict__["_late"] = True
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]
            elif isinstance(self, _Late):  # it is being loaded, in this thread
                raise AttributeError(name)
        return getattr(self, name)

    def _load(self) -> None:
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)


class _LateSsl(_Late):
    """The module `ssl`."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec, {})
        self.__dict__["_late_errors"] = {name: type(name, (OSError,), {"__slots__": ()}) for name in LATE_ERRORS}

    @contextlib.contextmanager
    def names_for_uvloop(self) -> Iterator[None]:
        """While uvloop is imported: what it keeps of `ssl`."""
        names: dict[str, object] = {
            **self.__dict__["_late_errors"],
            **_SSL_ERROR,
            "SSLError": OSError,  # its base: nothing else that is one is raised where uvloop looks for it
            "SSLContext": _Instances("SSLContext"),
            "CertificateError": _Instances("CertificateError"),
            "MemoryBIO": lambda: self.MemoryBIO(),
            "create_default_context": lambda: self.create_default_context(),
        }
        self.__dict__.update(names)
        try:
            yield
        finally:
            for name in names:
                self.__dict__.pop(name, None)

    def _load(self) -> None:
        super()._load()
        for name, known in self.__dict__.pop("_late_errors").items():
            error = self.__dict__[name]
            error.__bases__ = (*error.__bases__, known)


class _Instances:
    """A class of `ssl` for ``isinstance``, which loads nothing: what is not there has no instances."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __instancecheck__(self, instance: object) -> bool:
        return is_ssl_loaded() and isinstance(instance, getattr(sys.modules[SSL], self._name))


def _has_flag(function: object, flag: int) -> bool:
    """As `inspect` finds it, but for marks, which nobody can have set without that module, and for functions of
    Cython."""
    while isinstance(function, types.MethodType | functools.partial):
        function = function.__func__ if isinstance(function, types.MethodType) else function.func
    return isinstance(function, types.FunctionType) and bool(function.__code__.co_flags & flag)


def _is_awaitable(value: object) -> bool:
    if isinstance(value, types.GeneratorType):
        return bool(value.gi_code.co_flags & _ITERABLE_COROUTINE)
    return isinstance(value, types.CoroutineType | Awaitable)


def _unwrap(function: Any) -> Any:
    for _ in range(sys.getrecursionlimit()):
        if not hasattr(function, "__wrapped__"):
            return function
        function = function.__wrapped__
    raise ValueError(f"wrapper loop when unwrapping {function!r}")


_GENERATOR: Final = 0x20
_COROUTINE: Final = 0x80
"""Flags of a function's code: CO_GENERATOR and CO_COROUTINE."""
_ITERABLE_COROUTINE: Final = 0x100
"""CO_ITERABLE_COROUTINE."""
_KNOWN: Final[Mapping[str, Mapping[str, object]]] = {
    INSPECT: {
        "currentframe": lambda: sys._getframe(1),
        "isawaitable": _is_awaitable,
        "iscoroutinefunction": lambda value: _has_flag(value, _COROUTINE),
        "isfunction": lambda value: isinstance(value, types.FunctionType),
        "isgenerator": lambda value: isinstance(value, types.GeneratorType),
        "isgeneratorfunction": lambda value: _has_flag(value, _GENERATOR),
        "unwrap": _unwrap,
    },
    LOCALE: {"getencoding": _locale.getencoding},
}
"""Modules that load themselves, and what asyncio, uvloop, subprocess and aiohttp use of each, which must be there in a
process that can open no file any more."""
