"""meta/v1 Tables as the server answers with them, and rows out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""Accept header of whoever wants tables, and takes objects where there are none."""
CELLS: Final = "cells"
"""Key of a row's cells beside its object's fields."""

Object = dict[str, Any]


def objects_in(answer: Mapping[str, Any]) -> list[Object]:
    """Objects of a list, or of a Table with the cells beside each object's fields."""
    if answer.get("kind") != "Table":
        found: list[Object] = answer["items"]
        return found
    return [{**row["object"], CELLS: row["cells"]} for row in answer["rows"]]


def columns_in(answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Definitions of a Table's columns."""
    return answer.get("columnDefinitions") or ()
