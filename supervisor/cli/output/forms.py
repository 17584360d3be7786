"""Forms of output beside tables: what `-o` names, and objects in it (cli-runtime pkg/genericclioptions)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.resources.resource import Resource
from supervisor.cli.options import Failure
from supervisor.cli.printers.documents import DOCUMENTS, as_list
from supervisor.cli.suggestions import did_you_mean

TABLES: Final = ("", "wide")
NAME: Final = "name"
_TEMPLATES: Final = ("jsonpath", "jsonpath-file", "jsonpath-as-json", "custom-columns", "custom-columns-file")
_NOT_HERE: Final = ("go-template", "go-template-file", "template", "templatefile")
FORMATS: Final = (*_TEMPLATES, *DOCUMENTS, NAME, "wide")
MAX_FILE_BYTES: Final = 64 * 1024


class Output(msgspec.Struct, frozen=True):
    """A form of output, as `-o` names it."""

    format: str
    argument: str = ""

    @property
    def is_table(self) -> bool:
        """Whether the server makes the rows."""
        return self.format in TABLES

    @property
    def is_wide(self) -> bool:
        return self.format == "wide"


def parse_output(text: str, template: str = "", allowed: Sequence[str] = FORMATS) -> Output:
    """``-o``, with ``--template`` in place of what may follow its equals sign. Raises Failure."""
    name, said, argument = text.partition("=")
    if name in _NOT_HERE:
        raise Failure(
            f"{name} is not supported, nothing here runs Go's templates: use jsonpath or custom-columns",
            prefix="error: ",
        )
    if name and (name not in allowed or (said and name not in _TEMPLATES)):
        raise Failure(
            f'unable to match a printer suitable for the output format "{text}", allowed formats are:'
            f" {','.join(sorted(allowed))}{did_you_mean(name, allowed)}",
            prefix="error: ",
        )
    argument = argument or template
    if name in _TEMPLATES and not argument:
        raise Failure(f"template format specified but no template given: say {name}=...", prefix="error: ")
    if name.endswith("-file"):
        return Output(name.removesuffix("-file"), _read(argument))
    return Output(name, argument)


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Failure(f"error reading template {path}: {error.strerror}", prefix="error: ") from None
    if len(content) > MAX_FILE_BYTES:
        raise Failure(f"{path}: larger than {MAX_FILE_BYTES} bytes", prefix="error: ")
    return content.decode(errors="replace")


Form = Callable[[Sequence[Json], bool], str]
"""From objects, and whether there is one because one was asked for, to the text of all."""


def form(output: Output, *, headers: bool, allow_missing_keys: bool) -> Form:
    """How objects are written that were not made rows of by the server. Raises Failure for a wrong template."""
    if output.format in DOCUMENTS:
        document = DOCUMENTS[output.format]
        return lambda objects, single: document(objects[0] if single else as_list(objects))
    return _template(output, headers=headers, allow_missing_keys=allow_missing_keys)


def _template(output: Output, *, headers: bool, allow_missing_keys: bool) -> Form:
    from supervisor.cli.output import templates

    try:
        if output.format == "custom-columns":
            return templates.columns(output.argument, headers=headers)
        as_json = output.format == "jsonpath-as-json"
        return templates.jsonpath(output.argument, allow_missing_keys=allow_missing_keys, as_json=as_json)
    except templates.JsonPathError as error:
        where = "" if output.format == "custom-columns" else f"error parsing {output.format} {output.argument}, "
        raise Failure(f"{where}{error}", prefix="error: ") from None


def object_name(resource: Resource, obj: Json) -> str:
    """``pod/web``, ``priorityclass.scheduling.k8s.io/high`` (cli-runtime pkg/printers, name.go)."""
    group, slash, _ = resource.api_version.rpartition("/")
    kind = f"{resource.singular}.{group}" if slash else resource.singular
    return f"{kind}/{obj['metadata']['name']}"
