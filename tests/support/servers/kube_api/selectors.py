"""Field and label selectors (apimachinery pkg/fields, pkg/labels)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.support.servers.kube_api.failures import JsonObject, bad_request
from tests.support.servers.kube_api.resources import ResourceType

Test = Callable[[JsonObject], bool]
_SET: Final = re.compile(r"^(?P<key>\S+)\s+(?P<how>in|notin)\s+\((?P<values>[^)]*)\)$")
_COMPARE: Final = re.compile(r"^(?P<key>[^\s=!]+)\s*(?P<how>==|=|!=)\s*(?P<value>[^\s=!]*)$")
_COMMA: Final = re.compile(r",(?![^(]*\))")


def field_test(text: str, resource: ResourceType) -> Test:
    """Raises Refusal for a field that the resource cannot be selected by."""
    terms = [_field_term(term, resource) for term in text.split(",") if term]
    return lambda found: all(
        _value(found, path) == value if same else _value(found, path) != value for path, same, value in terms
    )


def _field_term(term: str, resource: ResourceType) -> tuple[str, bool, str]:
    found = _COMPARE.match(term)
    if found is None:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path = found["key"]
    namespaced = {"metadata.namespace"} if resource.namespaced else set()
    if path not in resource.fields | {"metadata.name"} | namespaced:
        if resource.group == "certificates.k8s.io" or resource.plural in ("leases", "csinodes", "runtimeclasses"):
            raise bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        raise bad_request(f"field label not supported: {path}")
    return path, found["how"] != "!=", found["value"]


def named_by(text: str) -> str:
    """The object's name when a field selector asks for one object alone, else empty (request info's rule)."""
    names = [term.partition("=")[2].lstrip("=") for term in text.split(",") if re.match(r"metadata\.name==?[^=]", term)]
    return names[0] if len(names) == 1 and names[0] else ""


def _value(found: JsonObject, path: str) -> str:
    value: Any = found
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    if path in ("spec.hostNetwork", "spec.unschedulable") and value is None:
        return "false"
    return "" if value is None else str(value)


def label_test(text: str) -> Test:
    """Raises Refusal."""
    tests = [_label_term(term.strip()) for term in _COMMA.split(text) if term.strip()]
    return lambda found: all(test(found.get("metadata", {}).get("labels") or {}) for test in tests)


def _label_term(term: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(term):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["how"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _COMPARE.match(term):
        key, value = found["key"], found["value"]
        if found["how"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    words = term.split()
    if len(words) > 1:
        said = f"unable to parse requirement: found '{words[1]}', expected: in, notin, =, ==, !=, gt, lt"
        raise bad_request(said)
    if term.startswith("!"):
        return lambda labels: term[1:] not in labels
    return lambda labels: term in labels
