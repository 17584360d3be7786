"""One kind of object: everything about it that the server and the command line must agree on."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec

CORE: Final = "/api/v1"
OURS: Final = "/rootlet/v1"
"""Root of the URLs of what Kubernetes does not have, or shows more of."""


class Column(msgspec.Struct, frozen=True):
    """meta/v1 TableColumnDefinition."""

    name: str
    type: str = "string"
    format: str = ""
    """``name`` for the column that names the object."""
    description: str = ""
    priority: int = 0
    """0 is always shown, 1 with ``-o wide`` only."""


def wide(name: str, *, format: str = "") -> Column:
    """A column that only ``-o wide`` shows."""
    return Column(name, format=format, priority=1)


NAME: Final = Column("Name", format="name")
AGE: Final = Column("Age")
PASSING: Final = frozenset(
    (
        *("Age", "Last Seen", "First Seen", "Heartbeat", "Syncs", "Errors", "Calls", "Failed Calls", "Failed Tasks"),
        *("RSS", "PSS", "CPU"),
    )
)
"""Columns that change all the time: alone they make no news of an object."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of object, and how it is asked for."""

    plural: str
    """The word for these objects in URLs and errors."""
    kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    is_namespaced: bool = True
    api_version: str = "v1"
    root: str = CORE
    is_watched: bool = True
    """Whether the server tells of changes; others are looked at again and again."""
    fields: frozenset[str] = frozenset(("metadata.name", "metadata.namespace"))
    """Fields that a field selector can ask for."""
    columns: tuple[Column, ...] = (NAME, AGE)

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that people type."""
        return self.plural, self.singular, *self.short_names

    def list_path(self, namespace: str | None) -> str:
        """The URL of a namespace's objects; None of all."""
        if namespace is None or not self.is_namespaced:
            return f"{self.root}/{self.plural}"
        return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"

    def object_path(self, namespace: str, name: str) -> str:
        """The URL of one of them."""
        return f"{self.list_path(namespace)}/{quote(name, safe='')}"
