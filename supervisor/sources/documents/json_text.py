"""JSON documents, one after the other. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Final

from supervisor.sources.documents.model import MAX_DEPTH, MAX_VALUES, Document, DocumentError, cut
from supervisor.sources.documents.scalars import MAX_NUMBER_CHARS, integer_or_float

_BETWEEN: Final = re.compile(r"(?:\s|---(?=\s|$))*")


def json_documents(text: str) -> Iterator[Document | DocumentError]:
    """JSON objects one after the other, with or without ``---`` between them."""
    number, position = 0, _skip(text, 0)
    while position < len(text):
        number += 1
        duplicates: list[str] = []
        try:
            value, position = _json_decoder(duplicates).raw_decode(text, position)
        except json.JSONDecodeError as error:
            yield DocumentError(number, "", f"line {error.lineno}: {error.msg}")
            return
        except (ValueError, RecursionError) as error:
            yield DocumentError(number, "", "nested too deeply" if isinstance(error, RecursionError) else str(error))
            return
        position = _skip(text, position)
        problem = f"duplicate key {cut(duplicates[0])}" if duplicates else _too_large(value)
        yield DocumentError(number, "", problem) if problem else Document(number, value)


def _skip(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def _json_decoder(duplicates: list[str]) -> json.JSONDecoder:
    """A strict decoder that adds the keys which occur twice in one object to ``duplicates``."""

    def mapping(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in pairs:
            if key in result:
                duplicates.append(key)
            result[key] = value
        return result

    return json.JSONDecoder(object_pairs_hook=mapping, parse_int=_integer, parse_float=_finite, parse_constant=_finite)


def _integer(text: str) -> int | float:
    return _finite(text) if len(text) > MAX_NUMBER_CHARS else integer_or_float(int(text))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number that JSON cannot say")
    return value


def _too_large(value: object) -> str:
    """Why a JSON value is above a maximum; empty when it is not."""
    level, count, depth = [value], 0, 0
    while level:
        count += len(level)
        depth += 1
        if count > MAX_VALUES:
            return f"more than {MAX_VALUES} values"
        if depth > MAX_DEPTH:
            return f"nested more than {MAX_DEPTH} levels deep"
        level = [child for item in level for child in _children(item)]
    return ""


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
