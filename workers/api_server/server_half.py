"""aiohttp without its client: the package imports that by itself, and a server needs none of it (2.8 MiB).

Neither does a server need some modules of the standard library of which aiohttp's take functions (1.2 MiB): they are
imported when one of these is called. Nor OpenSSL (1.5 MiB), unless a port of it has TLS: its listener asks for it then.

Nor does it serve files, for which aiohttp would read the host's lists of MIME types: 20 ms of CPU of each start.

The package is put into ``sys.modules`` before its own code has run. Its modules are imported as ever; whoever asks the
package itself for a name that is no module's runs that code, and has the whole of it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import mimetypes
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from ipc.process.lean_imports import SSL, absent, is_ssl_loaded

PACKAGE: Final = "aiohttp"
LATER: Final[Mapping[str, tuple[str, ...]]] = {
    "argparse": ("ArgumentParser",),
    "html": ("escape",),
    "urllib.request": ("getproxies", "proxy_bypass"),
}
"""Modules, and what aiohttp's take of each: for a command of its own, for pages of errors, for its client."""


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
    stand_ins = {name: taken for name, taken in LATER.items() if name not in sys.modules}
    for name, taken in stand_ins.items():
        stand_in = ModuleType(name)
        for function in taken:
            setattr(stand_in, function, _Later(name, function))
        sys.modules[name] = stand_in
    try:
        with _mime_types_built_in(), contextlib.nullcontext() if is_ssl_loaded() else absent(SSL):
            yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


@contextlib.contextmanager
def _mime_types_built_in() -> Iterator[None]:
    """While aiohttp makes the table of its files it knows the types that Python itself names. Afterwards whoever asks
    has the host's lists read, as ever."""
    mimetypes.knownfiles = []
    try:
        yield
    finally:
        importlib.reload(mimetypes)


class _Later:
    def __init__(self, module: str, function: str) -> None:
        self._module = module
        self._function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(self._module), self._function)(*args, **options)
