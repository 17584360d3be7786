"""Descriptions of PersistentVolumes and PersistentVolumeClaims (kubectl pkg/describe, describePersistentVolume and
describePersistentVolumeClaim).

Ours, because kubectl leaves it out: what a claim asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE, local_time, since
from ipc.k8s.resources.volume_cells import access_modes, claim, storage
from supervisor.cli.describe.lines import aligned, annotation_lines, label_lines
from supervisor.cli.printers.events import event_lines

NO_STORAGE: Final = "0"
"""Amount of storage where none is stated."""
_OPERATORS: Final = {"In": "in", "NotIn": "not in", "Exists": "exists", "DoesNotExist": "does not exist"}
_WITH_VALUES: Final = frozenset(("In", "NotIn"))
_CONDITION_TITLES: Final = ("Type", "Status", "LastProbeTime", "LastTransitionTime", "Reason", "Message")
_CONDITION_RULES: Final = ("----", "------", "-----------------", "------------------", "------", "-------")


def describe_volume(found: Json, events: Iterable[Json] | None, now: float) -> str:
    """Everything about a volume; ``events`` are those about it, None for none of them, ``now`` in epoch seconds."""
    return _described(_volume_lines(found, now), events, now)


def describe_claim(found: Json, users: Sequence[str], events: Iterable[Json] | None, now: float) -> str:
    """Everything about a claim; ``users`` are the names of the pods that mount it, the rest as of a volume."""
    return _described(_claim_lines(found, users, now), events, now)


def pods_that_use(claim_name: str, pods: Iterable[Json]) -> list[str]:
    """Names of the pods with a volume of this claim, in their order (getPodsForPVC)."""
    return [pod["metadata"]["name"] for pod in pods if claim_name in _claims_of(pod)]


def _claims_of(pod: Json) -> Iterator[str]:
    for volume in pod.get("spec", {}).get("volumes", ()):
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"].get("claimName", "")
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"


def _described(lines: Iterator[str], events: Iterable[Json] | None, now: float) -> str:
    return aligned([*lines, *(() if events is None else event_lines(events, now))])


def _volume_lines(found: Json, now: float) -> Iterator[str]:
    meta, spec, status = found["metadata"], found["spec"], found.get("status", {})
    yield f"Name:\t{meta['name']}"
    yield from _marks(meta)
    yield f"StorageClass:\t{spec.get('storageClassName', '')}"
    yield f"Status:\t{_phase(meta, status, now)}"
    yield f"Claim:\t{claim(spec)}"
    yield f"Reclaim Policy:\t{spec.get('persistentVolumeReclaimPolicy', '')}"
    yield f"Access Modes:\t{access_modes(spec)}"
    if spec.get("volumeMode"):
        yield f"VolumeMode:\t{spec['volumeMode']}"
    yield f"Capacity:\t{storage(spec.get('capacity')) or NO_STORAGE}"
    yield from _node_affinity(spec.get("nodeAffinity"))
    yield f"Message:\t{status.get('message', '')}"
    yield "Source:"
    source = [f"    {title}:\t{text}" for title, text in _source(spec)]
    yield from source or ["    <unknown>"]


def _marks(meta: Json) -> Iterator[str]:
    yield from label_lines(meta.get("labels", {}))
    yield from annotation_lines(meta.get("annotations", {}))
    yield f"Finalizers:\t[{' '.join(meta.get('finalizers', ()))}]"


def _phase(meta: Json, status: Json, now: float) -> str:
    if meta.get("deletionTimestamp"):
        return f"Terminating (lasts {since(meta['deletionTimestamp'], now)})"
    return str(status.get("phase", ""))


def _node_affinity(affinity: Json | None) -> Iterator[str]:
    """(printVolumeNodeAffinity)"""
    required = (affinity or {}).get("required")
    if required is None:
        yield f"Node Affinity:\t{NONE}"
        return
    yield "Node Affinity:\t"
    terms = required.get("nodeSelectorTerms", ())
    yield "  Required Terms:\t" + ("" if terms else NONE)
    for number, term in enumerate(terms):
        first, *others = [_requirement(each) for each in term.get("matchExpressions", ())] or [NONE]
        yield f"    Term {number}:\t{first}"
        yield from (f"\t{other}" for other in others)


def _requirement(expression: Json) -> str:
    """``foo in [val1, val2]`` (printNodeSelectorTermsMultilineWithIndent)."""
    operator = expression.get("operator", "")
    text = f"{expression.get('key', '')} {_OPERATORS.get(operator, operator)}"
    return f"{text} [{', '.join(expression.get('values', ()))}]" if operator in _WITH_VALUES else text


def _source(spec: Json) -> Iterator[tuple[str, str]]:
    if "hostPath" in spec:
        yield "Type", "HostPath (bare host directory volume)"
        yield "Path", spec["hostPath"].get("path", "")
        yield "HostPathType", spec["hostPath"].get("type", "")
    elif "local" in spec:
        yield "Type", "LocalVolume (a persistent volume backed by local storage on a node)"
        yield "Path", spec["local"].get("path", "")
    elif "csi" in spec:
        yield "Type", "a volume in Podman"
        yield "Name", spec["csi"]["volumeHandle"]


def _claim_lines(found: Json, users: Sequence[str], now: float) -> Iterator[str]:
    meta, spec, status = found["metadata"], found["spec"], found.get("status", {})
    yield f"Name:\t{meta['name']}"
    yield f"Namespace:\t{meta.get('namespace', '')}"
    yield f"StorageClass:\t{spec.get('storageClassName', '')}"
    yield f"Status:\t{_phase(meta, status, now)}"
    yield f"Volume:\t{spec.get('volumeName', '')}"
    yield from _marks(meta)
    if requests := storage(spec.get("resources", {}).get("requests")):
        yield f"Requests:\t{requests}"
    yield f"Capacity:\t{_claimed(spec, status)}"
    yield f"Access Modes:\t{_granted_modes(spec, status)}"
    if spec.get("volumeMode"):
        yield f"VolumeMode:\t{spec['volumeMode']}"
    yield from _data_source(spec.get("dataSource"))
    yield f"Used By:\t{users[0] if users else NONE}"
    yield from (f"\t{user}" for user in users[1:])
    yield from _conditions(status.get("conditions", ()))


def _claimed(spec: Json, status: Json) -> str:
    """Storage that it was given: none before it is bound."""
    return storage(status.get("capacity")) or NO_STORAGE if spec.get("volumeName") else ""


def _granted_modes(spec: Json, status: Json) -> str:
    return access_modes(status) if spec.get("volumeName") else ""


def _data_source(source: Json | None) -> Iterator[str]:
    if source is None:
        return
    yield "DataSource:"
    if source.get("apiGroup"):
        yield f"  APIGroup:\t{source['apiGroup']}"
    yield f"  Kind:\t{source['kind']}"
    yield f"  Name:\t{source['name']}"


def _conditions(conditions: Sequence[Json]) -> Iterator[str]:
    if not conditions:
        return
    yield "Conditions:"
    yield "  " + "\t".join(_CONDITION_TITLES)
    yield "  " + "\t".join(_CONDITION_RULES)
    for each in conditions:
        times = [local_time(each.get(name)) for name in ("lastProbeTime", "lastTransitionTime")]
        words = (each.get("reason", ""), each.get("message", ""))
        yield "  " + "\t".join((f"{each.get('type', '')} ", f"{each.get('status', '')} ", *times, *words))
