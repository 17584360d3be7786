"""Manifests as parsed YAML gives them, and random pods made from the types themselves."""

import typing
from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from ipc.k8s.api.decode import decode_pod
from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.schema import Kind, Shape, literal_values, shape_of, struct_fields
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.validation.pods.pod import validate_pod

MAX_OPTIONAL_FIELDS = 3
"""Optional fields that a random struct sets: more makes pods of thousands of values."""


def manifest(
    spec: Mapping[Any, object] | None = None,
    container: Mapping[Any, object] | None = None,
    metadata: Mapping[Any, object] | None = None,
) -> dict[str, Any]:
    """A valid one-container pod with these fields added or replaced."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", **(metadata or {})},
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36", **(container or {})}], **(spec or {})},
    }


def findings(obj: dict[str, Any]) -> list[str]:
    """Findings of validation for a manifest; the same before and after defaulting."""
    plain = decode_pod(obj)
    defaulted = [str(error) for error in validate_pod(default_pod(plain))]
    assert [str(error) for error in validate_pod(plain)] == defaulted
    return defaulted


def pods() -> st.SearchStrategy[Pod]:
    """Pods with random fields of the right types, all of which `decode_pod` accepts; few of them valid."""
    fields = struct_fields(Pod)
    return st.builds(Pod, metadata=_values(fields["metadata"].shape), spec=_values(fields["spec"].shape))


def _values(shape: Shape) -> st.SearchStrategy[Any]:
    if shape.kind is Kind.STRUCT:
        return _random_struct(shape.inner)
    if shape.kind is Kind.LIST:
        return st.lists(_values(shape_of(shape.inner)), max_size=2).map(tuple)
    if shape.kind is Kind.MAP:
        return st.dictionaries(st.text(max_size=5), _values(shape_of(shape.inner)), max_size=2)
    if shape.kind is Kind.FREE_FORM:
        return st.recursive(st.none() | st.booleans() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2))
    return _leaves(shape.inner)


@st.composite
def _random_struct(draw: st.DrawFn, struct: type[msgspec.Struct]) -> Any:
    fields = struct_fields(struct).values()
    optional = [field.name for field in fields if not field.required]
    some = draw(st.lists(st.sampled_from(optional), unique=True, max_size=MAX_OPTIONAL_FIELDS)) if optional else []
    given = [field for field in fields if field.required or field.name in some]
    return struct(**{field.attribute: draw(_values(field.shape)) for field in given})


def _leaves(annotation: Any) -> st.SearchStrategy[Any]:
    if choices := literal_values(annotation):
        return st.sampled_from(choices)
    if typing.get_origin(annotation) is typing.Annotated:
        limits = annotation.__metadata__[0]
        return st.text(max_size=8) if limits.max_length else st.integers(limits.ge, limits.le)
    if members := typing.get_args(annotation):
        return st.one_of(*map(_leaves, members))
    if annotation is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    return {str: st.text(max_size=8), bool: st.booleans()}[annotation]
