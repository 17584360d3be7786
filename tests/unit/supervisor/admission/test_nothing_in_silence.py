"""README: a field that cannot be honoured is refused or warned about by its path, never ignored in silence.

Every field of a Pod is walked. What the table of support calls supported has end-to-end tests (`test_page`), and is
read by code that acts; what it does not is an error when the manifest is read, or a warning when the pod is admitted.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.errors import FieldErrors
from ipc.k8s.api.schema import shape_of, struct_fields
from ipc.k8s.api.support.table import Support
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import Admitted, admit
from supervisor.config.settings import Settings
from supervisor.sources.objects.identity import identify
from supervisor.sources.objects.kinds import decode_item
from tests.support.manifests import ORIGIN
from tests.unit.ipc.k8s.api.support.test_page import LEAVES, LOUD, covering_rows, pod_with, unaccepted_value

REPOSITORY = Path(__file__).resolve().parents[4]
SETTINGS = Settings(node_name=ORIGIN.node_name)
SUPPORTED = (Support.SUPPORTED, Support.SUPPORTED_WITH_NOTE)
OVERWRITTEN = frozenset(
    f"metadata.{name}"
    for name in (
        *("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "managedFields"),
        "generateName",
    )
) | {"status"}
"""Fields that upstream, too, drops or overwrites when an object is created or a static pod is read, without a word."""
NOT_READ_BY_NAME = frozenset({"api_version", "stdin_once"})
"""Validation allows one value of the first; the second is part of what makes a container another one."""
ACTING = ("workers", "supervisor", "ipc")
NOT_ACTING = (
    "ipc/k8s/api/v1",
    "ipc/k8s/api/validation",
    "ipc/k8s/api/support",
    "ipc/k8s/api/defaults.py",
    "supervisor/cli",
)


def attribute(path: str) -> str:
    """The field's name in Python."""
    *parents, last = path.split(".")
    struct: Any = Pod
    for name in parents:
        shape = struct_fields(struct)[name.removesuffix("[*]")].shape
        struct = shape_of(shape.inner).inner if name.endswith("[*]") else shape.inner
    return struct_fields(struct)[last].attribute


def read_attributes() -> Iterator[str]:
    for file in (file for room in ACTING for file in (REPOSITORY / room).rglob("*.py")):
        if not file.relative_to(REPOSITORY).as_posix().startswith(NOT_ACTING):
            nodes = ast.walk(ast.parse(file.read_text()))
            yield from (node.attr for node in nodes if isinstance(node, ast.Attribute))


def test_every_supported_field_is_read_by_code_that_acts() -> None:
    read = set(read_attributes()) | NOT_READ_BY_NAME
    supported = (path for path in LEAVES if next(covering_rows(path)).support in SUPPORTED)
    assert {path for path in supported if attribute(path) not in read} == set()


@pytest.mark.parametrize("row", [row for row in LOUD if row.path not in OVERWRITTEN], ids=lambda row: row.path)
def test_every_other_field_is_refused_or_warned_of_by_its_path(row: Any) -> None:
    told = row.path.replace("[*]", "[0]")
    stated = pod_with(row.path, unaccepted_value(row))
    refused = [path for path in refusals(stated) if path and (path.startswith(told) or told.startswith(path))]
    assert refused or [warning for warning in warnings(stated) if told in warning]


def refusals(stated: Pod) -> tuple[str, ...]:
    """Paths of the errors of such a manifest."""
    try:
        decode_item(json.loads(msgspec.json.encode(stated)), ORIGIN)
    except FieldErrors as refused:
        return tuple(error.path for error in refused.errors)
    return ()


def warnings(stated: Pod) -> tuple[str, ...]:
    verdict = admit(identify(default_pod(stated), ORIGIN), NodeUsage(), SETTINGS, NodeResources())
    assert isinstance(verdict, Admitted)
    return verdict.warnings
