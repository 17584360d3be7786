"""Variants of a test that are not tried in every run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet


def seldom(*values: object, id: str | None = None) -> ParameterSet:
    """Parameters of a variant for which its siblings stand in `make test`; `make test-slow` tries it."""
    return pytest.param(*values, marks=pytest.mark.slow, id=id)


def often(kinds: Mapping[str, Any] | Collection[str], *chosen: str) -> list[ParameterSet]:
    """All kinds by name, with their values if they have any; those that are not chosen are tried seldom."""
    values = kinds if isinstance(kinds, Mapping) else dict(zip(kinds, kinds, strict=True))
    assert chosen, "one of them at least stands for the others"
    assert set(chosen) <= set(values), chosen
    return [(pytest.param if kind in chosen else seldom)(value, id=kind) for kind, value in values.items()]
