"""From a pod of the server to one that this node can run, or the reason why it cannot. Pure.

What the server sends was defaulted and validated there. Fields that are not known here are dropped, as an older kubelet
drops them; one that is known and would be wrong to ignore makes the node refuse the pod, as a failed admission.
"""

from __future__ import annotations

import itertools
from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE
from ipc.host.text.safe_text import safe_line
from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.decode import MAX_VALUES, decode_server_pod
from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.errors import FieldError, FieldErrors
from ipc.k8s.api.support.cluster import is_of_cluster
from ipc.k8s.api.support.findings import unsupported_fields
from ipc.k8s.api.support.table import Support
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import PodStatus
from ipc.k8s.api.validation.pods.pod import validate_pod
from ipc.link.messages.event_reasons import UNSUPPORTED_FIELD, EventReason
from workers.cluster.pods.known_pod import KnownMeta, KnownPod

_REFUSED: Final = frozenset({Support.REFUSED})
_SPEC: Final = msgspec.json.Decoder(PodSpec)
MAX_AT_ONCE_BYTES: Final = MAX_VALUES
"""Longest spec that cannot have more values than a pod may."""
MAX_TOLD: Final = 5
"""Most fields that a refusal names."""


class Refusal(msgspec.Struct, frozen=True):
    """Why this node does not run a pod."""

    reason: EventReason
    message: str


def desired_pod(known: KnownPod) -> Pod | Refusal:
    """The pod as the master gets it."""
    try:
        pod = default_pod(decoded_at_once(known) or decoded(known))
    except FieldErrors as found:
        return _refusal(found.errors)
    refused = itertools.islice(
        (
            FieldError(finding.path, f"not supported: {finding.why}")
            for finding in unsupported_fields(pod, _REFUSED)
            if not is_of_cluster(finding.path)
        ),
        MAX_TOLD,
    )
    if wrong := (*validate_pod(pod), *refused):
        return _refusal(wrong)
    annotations = {**pod.metadata.annotations, CONFIG_SOURCE: API_SOURCE}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))


def decoded_at_once(known: KnownPod) -> Pod | None:
    """The pod, decoded in C. None for one with a field or a null that the types do not have, or with something wrong:
    the walk knows what is dropped, and has words for the rest."""
    if memoryview(known.spec).nbytes > MAX_AT_ONCE_BYTES:
        return None
    try:
        return Pod(
            api_version="v1",
            kind="Pod",
            metadata=msgspec.convert(_set_of(known.metadata), ObjectMeta),
            spec=_SPEC.decode(known.spec),
            status=msgspec.convert(known.status_value(), PodStatus),
        )
    except UNDECODABLE:
        return None


def _set_of(metadata: KnownMeta) -> dict[str, object]:
    """Fields that are set, by name."""
    return {name: value for name, value in msgspec.to_builtins(metadata).items() if value is not None}


def decoded(known: KnownPod) -> Pod:
    """Raises FieldErrors."""
    try:
        spec = msgspec.json.decode(known.spec)
    except UNDECODABLE as error:
        raise FieldErrors((FieldError("spec", str(error)),)) from None
    return decode_server_pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": msgspec.to_builtins(known.metadata),
            "spec": spec,
            "status": known.status_value(),
        }
    )


def _refusal(errors: tuple[FieldError, ...]) -> Refusal:
    words = "; ".join(f"{error.path}: {error.message}" for error in errors[:MAX_TOLD])
    return Refusal(UNSUPPORTED_FIELD, safe_line(words))
