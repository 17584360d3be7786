"""Refusals of a body, whatever the object was before, as a real server has them: values that Go does not decode
(apimachinery pkg/apis/meta/v1, pkg/api/resource) and what validation says of kinds that a node writes
(pkg/apis/*/validation)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.support.servers.kube_api.failures import Cause, JsonObject, bad_request, invalid, required
from tests.support.servers.kube_api.resources import ResourceType

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_QUANTITY: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?")

Undecodable = Callable[[Any], str]
"""Why Go does not decode a value; empty for one that it does. None is an absent one."""


def _time(layout: str, form: re.Pattern[str]) -> Undecodable:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            return f"json: cannot unmarshal {_go_name(value)} into Go struct field of type string"
        return "" if form.fullmatch(value) else f'parsing time "{value}" as "{layout}": cannot parse "{value}"'

    return check


def _of_type(type_: type, go: str) -> Undecodable:
    def check(value: Any) -> str:
        is_right = isinstance(value, type_) and (type_ is bool or not isinstance(value, bool))
        return "" if is_right else f"json: cannot unmarshal {_go_name(value)} into Go struct field of type {go}"

    return check


def _quantity(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if isinstance(value, str) and _QUANTITY.fullmatch(value):
        return ""
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _go_name(value: Any) -> str:
    names = {bool: "bool", str: "string", dict: "object", list: "array"}
    return names.get(type(value), "number")


TIME: Final = _time("2006-01-02T15:04:05Z07:00", _TIME)
MICRO_TIME: Final = _time("2006-01-02T15:04:05.000000Z07:00", _MICRO_TIME)
INT: Final = _of_type(int, "int32")
STRING: Final = _of_type(str, "string")
BOOL: Final = _of_type(bool, "bool")

_METADATA: Final[dict[str, Undecodable]] = {
    "metadata.name": STRING,
    "metadata.creationTimestamp": TIME,
    "metadata.deletionTimestamp": TIME,
    "metadata.deletionGracePeriodSeconds": INT,
    "metadata.labels.*": STRING,
    "metadata.annotations.*": STRING,
}
_CONDITIONS: Final[dict[str, Undecodable]] = {
    f"status.conditions.*.{name}": check
    for name, check in {
        "type": STRING,
        "status": STRING,
        "reason": STRING,
        "message": STRING,
        "lastProbeTime": TIME,
        "lastHeartbeatTime": TIME,
        "lastTransitionTime": TIME,
        "observedGeneration": INT,
    }.items()
}
_CONTAINERS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_POD: Final[dict[str, Undecodable]] = {
    "status.phase": STRING,
    "status.startTime": TIME,
    "status.observedGeneration": INT,
} | {
    f"status.{kind}.*.{name}": check
    for kind in _CONTAINERS
    for name, check in {
        "ready": BOOL,
        "started": BOOL,
        "restartCount": INT,
        "image": STRING,
        "state.running.startedAt": TIME,
        "state.terminated.exitCode": INT,
        "state.terminated.startedAt": TIME,
        "state.terminated.finishedAt": TIME,
        "lastState.terminated.exitCode": INT,
        "lastState.terminated.startedAt": TIME,
        "lastState.terminated.finishedAt": TIME,
        "resources.requests.*": _quantity,
        "resources.limits.*": _quantity,
        "allocatedResources.*": _quantity,
    }.items()
}
_NODE: Final[dict[str, Undecodable]] = {
    "spec.unschedulable": BOOL,
    "status.capacity.*": _quantity,
    "status.allocatable.*": _quantity,
    "status.addresses.*.address": STRING,
    "status.daemonEndpoints.kubeletEndpoint.Port": INT,
    "status.images.*.sizeBytes": INT,
}
_FIELDS: Final[Mapping[str, Mapping[str, Undecodable]]] = {
    "Pod": _METADATA | _CONDITIONS | _POD,
    "Node": _METADATA | _CONDITIONS | _NODE,
    "Lease": _METADATA
    | {
        "spec.holderIdentity": STRING,
        "spec.leaseDurationSeconds": INT,
        "spec.leaseTransitions": INT,
        "spec.acquireTime": MICRO_TIME,
        "spec.renewTime": MICRO_TIME,
    },
    "Event": _METADATA
    | {
        "count": INT,
        "firstTimestamp": TIME,
        "lastTimestamp": TIME,
        "eventTime": MICRO_TIME,
        "reason": STRING,
        "message": STRING,
        "type": STRING,
    },
    "TokenRequest": {"spec.expirationSeconds": INT, "spec.audiences.*": STRING},
}
"""By kind and path; ``*`` is every item of a list or every value of a map. Only what a node writes."""


def check_decodes(resource: ResourceType, body: JsonObject) -> None:
    """Raises Refusal (400)."""
    if problem := next(_problems(resource.kind, body), ""):
        version = f'{resource.kind} in version "{resource.version}"'
        raise bad_request(f"{version} cannot be handled as a {resource.kind}: {problem}")


def check_patched(kind: str, found: JsonObject) -> None:
    """Raises Refusal (422): the patch has made it something that Go does not decode."""
    if problem := next(_problems(kind, found), ""):
        raise invalid("", "", [Cause("patch", f"Invalid value: {problem}")])


def _problems(kind: str, body: JsonObject) -> Iterator[str]:
    for path, check in _FIELDS.get(kind, {}).items():
        for value in _values(body, path.split(".")):
            if value is not None and (said := check(value)):
                yield said


def _values(found: Any, path: list[str]) -> Iterator[Any]:
    """Every value at the path; of what is absent none."""
    if not path:
        yield found
    elif path[0] == "*":
        children = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
        for child in children:
            yield from _values(child, path[1:])
    elif isinstance(found, dict) and path[0] in found:
        yield from _values(found[path[0]], path[1:])


def check_valid(resource: ResourceType, before: JsonObject | None, made: JsonObject) -> None:
    """Raises Refusal (400, 422)."""
    check = _VALIDATIONS.get(resource.plural)
    causes = list(check(made, before or {})) if check else []
    if causes:
        raise invalid(resource.kind, made.get("metadata", {}).get("name", ""), causes, resource.group)


def _lease(made: JsonObject, _: JsonObject) -> Iterator[Cause]:
    """ValidateLeaseSpec."""
    spec = made.get("spec") or {}
    if (seconds := spec.get("leaseDurationSeconds")) is not None and seconds <= 0:
        yield Cause("spec.leaseDurationSeconds", f"Invalid value: {seconds}: must be greater than 0")
    if (spec.get("leaseTransitions") or 0) < 0:
        said = f"Invalid value: {spec['leaseTransitions']}: must be greater than or equal to 0"
        yield Cause("spec.leaseTransitions", said)


def _event(made: JsonObject, _: JsonObject) -> Iterator[Cause]:
    """legacyValidateEvent, of an event without an eventTime: one of core/v1's recorder. Another one has to say more."""
    namespace, of = made["metadata"]["namespace"], made.get("involvedObject") or {}
    about = of.get("namespace", "")
    if made.get("eventTime"):
        needed = ("reportingComponent", "reportingInstance", "action", "reason")
        yield from (required(name) for name in needed if not made.get(name))
        agrees = bool(about) or namespace in ("default", "kube-system")
    else:
        agrees = about == namespace if about else namespace == "default"
    if not agrees:
        yield Cause("involvedObject.namespace", f'Invalid value: "{about}": does not match event.namespace')


def _node(made: JsonObject, before: JsonObject) -> Iterator[Cause]:
    """ValidateNodeUpdate, of what a node may say of itself."""
    status, spec, old = made.get("status") or {}, made.get("spec") or {}, before.get("spec") or {}
    seen: list[Any] = []
    for index, address in enumerate(status.get("addresses") or ()):
        if address in seen:
            yield Cause(f"status.addresses[{index}]", f"Duplicate value: {address}", "FieldValueDuplicate")
        seen.append(address)
    for name in ("capacity", "allocatable"):
        for resource, amount in (status.get(name) or {}).items():
            if str(amount).startswith("-"):
                said = f'Invalid value: "{amount}": must be greater than or equal to 0'
                yield Cause(f"status.{name}.{resource}", said)
    for name, field in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if old.get(name) and spec.get(name) != old[name]:
            said = f'Forbidden: node updates may not change {field} except from "" to valid'
            yield Cause(f"spec.{name}", said, "FieldValueForbidden")


def _access_review(made: JsonObject, _: JsonObject) -> Iterator[Cause]:
    """ValidateSubjectAccessReview."""
    spec = made.get("spec") or {}
    kinds = [name for name in ("resourceAttributes", "nonResourceAttributes") if spec.get(name) is not None]
    if len(kinds) == 2:
        said = "Invalid value: cannot be specified in combination with resourceAttributes"
        yield Cause("spec.nonResourceAttributes", said)
    if not kinds:
        said = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield Cause("spec.resourceAttributes", said)
    if not spec.get("user") and not spec.get("groups"):
        yield Cause("spec.user", 'Invalid value: "": at least one of user or group must be specified')
    if any(made.get("metadata", {}).values()):
        yield Cause("metadata", "Invalid value: must be empty")


def _token_review(made: JsonObject, _: JsonObject) -> Iterator[Cause]:
    if not (made.get("spec") or {}).get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    yield from ()


_VALIDATIONS: Final[Mapping[str, Callable[[JsonObject, JsonObject], Iterator[Cause]]]] = {
    "leases": _lease,
    "events": _event,
    "nodes": _node,
    "subjectaccessreviews": _access_review,
    "tokenreviews": _token_review,
}
