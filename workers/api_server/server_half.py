"""aiohttp without its client: the package imports that by itself, and a server needs none of it (2.8 MiB).

Neither does a server need some modules of which aiohttp's take functions (3 MiB), which are imported when one of these
is called, nor OpenSSL (1.5 MiB), which a listener with TLS asks for.

Nor does it serve files, for which aiohttp would read the host's lists of MIME types: 20 ms of CPU of each start. And
most of its routes are asked for by nobody: their patterns are compiled when a path is first held against them.

The package is put into ``sys.modules`` before its own code has run. Its modules are imported as ever; whoever asks the
package itself for a name that is no module's runs that code, and has the whole of it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import mimetypes
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, Final, TypeVar, TypeVarTuple

from ipc.process.lean_imports import SSL, absent, is_ssl_loaded

PACKAGE: Final = "aiohttp"
LATER: Final[Mapping[str, tuple[str, ...]]] = {
    "argparse": ("ArgumentParser",),
    "attr.converters": (),
    "attr.filters": (),
    "attr.validators": (),
    "email.utils": ("parsedate",),
    "html": ("escape",),
    "idna": ("decode", "encode"),
    "urllib.request": ("getproxies", "proxy_bypass"),
}
"""Modules, and what aiohttp's and those below take of each: for a command of its own, for classes that nobody makes
here, for dates of files, for pages of errors, for names of hosts that are no ASCII, for its client. What stands in for
others: `_stand_ins`."""
FROZEN_LIST: Final = "frozenlist._frozenlist"
"""An extension that would bring the library of C++, 0.9 MiB, for lists of a few handlers."""


def leave_client_out() -> None:
    """Call it before anything of aiohttp is imported; later it changes nothing. Raises ImportError without aiohttp."""
    if PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise ImportError(f"no package {PACKAGE}", name=PACKAGE)
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _ServerHalf
    # Modules of aiohttp ask for the version, for the header Server, which is not sent.
    package.__dict__["__version__"] = ""
    sys.modules[PACKAGE] = package


class _ServerHalf(ModuleType):
    __spec__: ModuleSpec

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or importlib.util.find_spec(f"{PACKAGE}.{name}") is not None:
            raise AttributeError(name)  # the import system imports such a module
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


@contextlib.contextmanager
def functions_later() -> Iterator[None]:
    """While aiohttp's modules are imported: they get functions that import those of LATER when they are called.
    Afterwards whoever imports these has them as ever."""
    stand_ins = {name: module for name, module in _stand_ins().items() if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        with contextlib.ExitStack() as without:
            without.enter_context(_mime_types_built_in())
            without.enter_context(absent(FROZEN_LIST))
            if not is_ssl_loaded():
                without.enter_context(absent(SSL))
            yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


def _stand_ins() -> dict[str, ModuleType]:
    return {
        **{name: _StandIn(name, {taken: _Later(name, taken) for taken in LATER[name]}) for name in LATER},
        "email.message": _StandIn("email.message", {"EmailMessage": _Message}),
        "email.parser": _StandIn("email.parser", {"HeaderParser": _header_parser}),
        "email.policy": _StandIn("email.policy", {"HTTP": None}),
        "typing_extensions": _StandIn(
            "typing_extensions",
            {"TypeVar": _without_default(TypeVar), "TypeVarTuple": _without_default(TypeVarTuple)},
        ),
    }


class _StandIn(ModuleType):
    """Has what is known to be taken of a module. Whoever takes anything else has the module imported."""

    def __init__(self, name: str, values: Mapping[str, object]) -> None:
        super().__init__(name)
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class _Message:
    """Base of aiohttp's class of messages, until it makes one, to parse a content type."""


def _header_parser(message: type[_Message], policy: None) -> Any:
    messages, parser, policies = (importlib.import_module(f"email.{name}") for name in ("message", "parser", "policy"))
    message.__bases__ = (messages.EmailMessage,)
    return parser.HeaderParser(message, policy=policies.HTTP)


def _without_default(made: Callable[..., object]) -> Callable[..., object]:
    """Python's own type variables have no defaults before 3.13, which say nothing when a program runs."""
    return lambda *arguments, default=None, **options: made(*arguments, **options)


@contextlib.contextmanager
def _mime_types_built_in() -> Iterator[None]:
    """While aiohttp makes the table of its files it knows the types that Python itself names. Afterwards whoever asks
    has the host's lists read, as ever."""
    mimetypes.knownfiles = []
    try:
        yield
    finally:
        importlib.reload(mimetypes)


@contextlib.contextmanager
def patterns_later() -> Iterator[None]:
    """While routes are added: aiohttp's dispatcher compiles none of their patterns."""
    dispatcher = sys.modules[f"{PACKAGE}.web_urldispatcher"]
    vars(dispatcher)["re"] = SimpleNamespace(compile=_Pattern, escape=re.escape, error=re.error)
    try:
        yield
    finally:
        vars(dispatcher)["re"] = re


class _Pattern:
    """The methods of a compiled pattern that the dispatcher uses."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @functools.cached_property
    def fullmatch(self) -> Callable[[str], re.Match[str] | None]:
        return re.compile(self.pattern).fullmatch


class _Later:
    def __init__(self, module: str, function: str) -> None:
        self._module = module
        self._function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(self._module), self._function)(*args, **options)
