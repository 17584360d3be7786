"""aiohttp without its client: the package imports that by itself, and a server needs none of it (2.8 MiB).

The package is put into ``sys.modules`` before its own code has run. Its modules are imported as ever; whoever asks the
package itself for a name that is no module's runs that code, and has the whole of it.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

PACKAGE: Final = "aiohttp"


def leave_client_out() -> None:
    """Call it before anything of aiohttp is imported; later it changes nothing. Raises ImportError without aiohttp."""
    if PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise ImportError(f"no package {PACKAGE}", name=PACKAGE)
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _ServerHalf
    # Its modules ask for the version, for the header Server, which is not sent.
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
