"""A host for volumes of objects."""

from tests.support.object_volumes import on_host

__all__ = ["on_host"]
