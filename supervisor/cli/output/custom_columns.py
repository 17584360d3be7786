"""Tables of columns that the user names (kubectl pkg/cmd/get, customcolumn.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE
from supervisor.cli.output.jsonpath import JsonPath
from supervisor.cli.output.jsonpath_parser import JsonPathError, relaxed
from supervisor.cli.printers.tables import TablePrinter


class CustomColumns:
    """``NAME:.metadata.name,IMAGES:.spec.containers[*].image``."""

    def __init__(self, headers: Sequence[str], paths: Sequence[JsonPath], *, show_header: bool) -> None:
        self._paths = paths
        self._table = TablePrinter(headers, show_header=show_header)

    @classmethod
    def parsed(cls, text: str, *, headers: bool) -> CustomColumns:
        """From a specification, or from a file's two lines: headers, then paths. Raises JsonPathError."""
        lines = text.strip().splitlines()
        pairs = _of_file(lines) if len(lines) > 1 else [_pair(part) for part in text.strip().split(",")]
        paths = [JsonPath(relaxed(path)) for _, path in pairs]
        return cls([header for header, _ in pairs], paths, show_header=headers)

    def format(self, objects: Iterable[Json]) -> str:
        """A line for each object, under the header the first time. Raises JsonPathError."""
        return self._table.format([_cell(path, obj) for path in self._paths] for obj in objects)


def _of_file(lines: Sequence[str]) -> list[tuple[str, str]]:
    headers, paths = lines[0].split(), lines[1].split()
    if len(headers) != len(paths):
        raise JsonPathError(f"number of headers ({len(headers)}) and field specifications ({len(paths)}) don't match")
    return list(zip(headers, paths, strict=True))


def _pair(part: str) -> tuple[str, str]:
    header, colon, path = part.partition(":")
    if not colon or not path:
        raise JsonPathError(f"unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>")
    return header, path


def _cell(path: JsonPath, obj: Json) -> str:
    found = [value for values in path.find(obj) for value in values]
    return ",".join(map(go_value, found)) if found else NONE


def go_value(value: object) -> str:
    """Write a value as Go's ``%v`` does: ``map[app:web]``, ``[a b]``."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "<nil>"
        case Mapping():
            return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(go_value, value))}]"
    return str(value)
