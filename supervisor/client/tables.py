"""meta/v1 Tables as the server answers with them, and rows out of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ipc.host.text.json_types import Json, JsonObject

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""Accept header of whoever wants tables, and takes objects where there are none."""
CELLS: Final = "cells"
"""Key of a row's cells beside its object's fields."""


def objects_in(answer: Json) -> list[JsonObject]:
    """Objects of a list, or of a Table with the cells beside each object's fields."""
    if answer.get("kind") != "Table":
        found: list[JsonObject] = answer["items"]
        return found
    return [{**row["object"], CELLS: row["cells"]} for row in answer["rows"]]


def columns_in(answer: Json) -> Sequence[Json]:
    """Definitions of a Table's columns."""
    return answer.get("columnDefinitions") or ()
