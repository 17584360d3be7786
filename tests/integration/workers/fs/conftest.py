"""A tree to be removed."""

from tests.harness.removed_tree import parent

__all__ = ["parent"]
