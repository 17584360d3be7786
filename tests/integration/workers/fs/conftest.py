"""A tree to be removed."""

from tests.support.removed_tree import parent

__all__ = ["parent"]
