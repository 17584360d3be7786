"""Table of handlers by the type of what they take, checked by mypy entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar, cast

M = TypeVar("M")
P = ParamSpec("P")
R = TypeVar("R")


class DispatchTable(Generic[P, R]):
    """One handler for each type. ``P``: what every handler takes beside the message; ``R``: what it answers."""

    def __init__(self) -> None:
        self._handlers: dict[type[object], Callable[Concatenate[object, P], R]] = {}

    def on(self, kind: type[M], handler: Callable[Concatenate[M, P], R]) -> None:
        """Messages of exactly that type go to that handler. Raises ValueError for a type that has one already."""
        if kind in self._handlers:
            raise ValueError(f"two handlers of {kind.__name__}")
        # Only messages of that type reach it.
        self._handlers[kind] = cast("Callable[Concatenate[object, P], R]", handler)

    @property
    def kinds(self) -> frozenset[type[object]]:
        """The types that have a handler."""
        return frozenset(self._handlers)

    def __call__(self, message: object, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have it handled. Raises KeyError for a message that no handler takes."""
        return self._handlers[type(message)](message, *args, **kwargs)
