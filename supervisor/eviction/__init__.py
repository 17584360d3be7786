"""Decisions of eviction by pressure on the node: which threshold counts, which pod goes, and what it is told. Pure."""
