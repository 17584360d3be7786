"""Objects in forms that the user describes: JSONPath templates and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ipc.host.text.json_types import Json
from supervisor.cli.options import Failure
from supervisor.cli.output.custom_columns import CustomColumns
from supervisor.cli.output.jsonpath import JsonPath
from supervisor.cli.output.jsonpath_parser import JsonPathError
from supervisor.cli.printers.documents import as_list

__all__ = ["JsonPathError", "columns", "jsonpath"]

Form = Callable[[Sequence[Json], bool], str]


def columns(specification: str, *, headers: bool) -> Form:
    """A table of columns that the user names. Raises JsonPathError; the form raises Failure."""
    table = CustomColumns.parsed(specification, headers=headers)

    def formatted(objects: Sequence[Json], single: bool) -> str:
        try:
            return table.format(objects)
        except JsonPathError as error:
            raise Failure(str(error), prefix="error: ") from None

    return formatted


def jsonpath(template: str, *, allow_missing_keys: bool, as_json: bool) -> Form:
    """A template, filled in. Raises JsonPathError; the form raises Failure."""
    path = JsonPath(template, allow_missing_keys=allow_missing_keys)
    render = path.render_json if as_json else path.render

    def filled_in(objects: Sequence[Json], single: bool) -> str:
        try:
            return render(objects[0] if single else as_list(objects))
        except JsonPathError as error:
            message = f'error executing jsonpath "{template}": Error executing template: {error}.'
            raise Failure(message, prefix="error: ") from None

    return filled_in
