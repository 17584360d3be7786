"""The labels by which everything about a container is known again after any crash: keys, bounds, reading, writing.

Pod and container names use the kubelet's own keys (staging/src/k8s.io/kubelet/pkg/types/labels.go), and so does what
the kubelet keeps of a container beside them (pkg/kubelet/kuberuntime/labels.go), so that other tools read them; the
rest is ours. Podman joins the labels of an image with those of a container, and ours win: so every label of a table is
written on everything that it is read from, and no image can supply one. The infra container inherits its pod's labels
and is told apart by ``IsInfra``. Whose labels are believed at all is for `workers.kubecontainer.label_signatures`.

Reading never fails and is bounded: whatever has another form than ours counts as not given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from ipc.host.clock import MAX_TIMESTAMP_CHARS, parse_rfc3339, rfc3339
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.probe import LifecycleHandler

DEFAULT_GRACE_PERIOD_S: Final = 30
"""v1's default for terminationGracePeriodSeconds (pkg/apis/core/v1/defaults.go)."""

INSTANCE: Final = "rootlet.dev/instance"
POD_NAME: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
POD_UID: Final = "io.kubernetes.pod.uid"
CONTAINER_NAME: Final = "io.kubernetes.container.name"
CONTAINER_HASH: Final = "rootlet.dev/container-hash"
SANDBOX_HASH: Final = "rootlet.dev/sandbox-hash"
ATTEMPT: Final = "rootlet.dev/attempt"
"""Restart count of a container, attempt of a sandbox (on the Podman pod)."""
BACKOFF_S: Final = "rootlet.dev/restart-backoff-seconds"
GRACE_PERIOD_S: Final = "rootlet.dev/termination-grace-period-seconds"
HOST_NETWORK: Final = "rootlet.dev/host-network"
LEAVES_PROCESSES: Final = "rootlet.dev/leaves-processes"
"""Whether the end of the container's first process leaves others that it has."""
PRE_STOP: Final = "io.kubernetes.container.preStopHandler"
"""The hook as JSON; empty when there is none."""
TERMINATION_MESSAGE_PATH: Final = "io.kubernetes.container.terminationMessagePath"
"""Within the container; empty when it has no such file."""
TERMINATION_MESSAGE_POLICY: Final = "io.kubernetes.container.terminationMessagePolicy"
RESOURCES: Final = "rootlet.dev/resources"
"""Requests and limits of cpu and memory with which it was made, as JSON."""
DEVICES: Final = "rootlet.dev/devices"
"""Devices that a container was given, by extended resource, as JSON; empty when there are none."""
IMAGE_VOLUMES: Final = "rootlet.dev/image-volumes"
"""Images that a container sees as volumes, by the volume's name, as JSON; empty when there are none."""
ACTIVE_SINCE: Final = "rootlet.dev/active-since"
"""When the pod of a sandbox began to be active, as RFC 3339; empty without a deadline of its activity."""
SIGNATURE: Final = "rootlet.dev/signature"
"""Proof that the other labels are ours, and this container's (`workers.kubecontainer.label_signatures`)."""

MAX_ATTEMPT: Final = 2**31 - 1
MAX_BACKOFF_S: Final = 86_400.0
MAX_HOOK_CHARS: Final = 1 << 20
"""A hook of a manifest of the default size fits."""
MAX_RESOURCES_CHARS: Final = 1024
"""Characters of two requests and two limits."""
MAX_DEVICES_CHARS: Final = 1 << 16
MAX_IMAGE_VOLUMES_CHARS: Final = 1 << 16


N = TypeVar("N", int, float)


# --- forms -------------------------------------------------------------------------------------------------------


class Form(msgspec.Struct, frozen=True):
    """How a value is written on a label."""

    max_chars: int
    """Longer text is ignored."""
    read: Callable[[str], Any]
    """Raises ValueError, MsgspecError or RecursionError for text that is none."""
    write: Callable[[Any], str] = str
    since: int = 1
    """Version of the set of signed labels that has it first: what was signed with an older one has none of it."""


def _text(max_chars: int, pattern: str = r"[^\ud800-\udfff]*") -> Form:
    """Anything that can be encoded, unless there is a pattern."""
    form = re.compile(pattern)

    def read(text: str) -> str:
        if not form.fullmatch(text):
            raise ValueError("another form")
        return text

    return Form(max_chars, read)


def _whole(maximum: int) -> Form:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise ValueError("no digits")
        return _at_most(maximum, int(text))

    return Form(len(str(maximum)), read)


def _seconds(maximum: float) -> Form:
    return Form(24, lambda text: _at_most(maximum, float(text)), lambda value: f"{value:g}")


def _at_most(maximum: N, value: N) -> N:
    if not 0 <= value <= maximum:
        raise ValueError("out of range")
    return value


def _read_flag(text: str) -> bool:
    return bool(("false", "true").index(text))


def _read_hook(text: str) -> LifecycleHandler:
    return msgspec.json.decode(text, type=LifecycleHandler)


def _write_hook(hook: LifecycleHandler | None) -> str:
    return msgspec.json.encode(hook).decode() if hook is not None else ""


def _read_resources(text: str) -> ResourceRequirements:
    resources = msgspec.json.decode(text, type=ResourceRequirements)
    for quantity in (*resources.limits.values(), *resources.requests.values()):
        parse_quantity(quantity)
    return resources


def _write_resources(resources: ResourceRequirements | None) -> str:
    return msgspec.json.encode(resources or ResourceRequirements()).decode()


def _read_devices(text: str) -> dict[str, tuple[str, ...]]:
    return msgspec.json.decode(text, type=dict[str, tuple[str, ...]])


def _write_devices(devices: Mapping[str, tuple[str, ...]]) -> str:
    return msgspec.json.encode(devices).decode() if devices else ""


def _read_image_volumes(text: str) -> dict[str, str]:
    return msgspec.json.decode(text, type=dict[str, str])


def _write_image_volumes(images: Mapping[str, str]) -> str:
    return msgspec.json.encode(images).decode() if images else ""


def _read_date(text: str) -> str:
    return rfc3339(parse_rfc3339(text))


_NAME: Final = _text(253, "[a-z0-9][a-z0-9.-]*")
_UID: Final = _text(63, "[A-Za-z0-9][A-Za-z0-9-]*")
_HASH: Final = _text(64, "[0-9a-f]*")
_ATTEMPT: Final = _whole(MAX_ATTEMPT)
_INT64: Final = _whole(2**63 - 1)
_BACKOFF: Final = _seconds(MAX_BACKOFF_S)
_FLAG: Final = Form(5, _read_flag, lambda value: str(value).lower())
_PATH: Final = _text(4096)
_WORD: Final = _text(64, "[A-Za-z]*")
_HOOK: Final = Form(MAX_HOOK_CHARS, _read_hook, _write_hook)
_RESOURCES: Final = Form(MAX_RESOURCES_CHARS, _read_resources, _write_resources, since=2)
_DEVICES: Final = Form(MAX_DEVICES_CHARS, _read_devices, _write_devices, since=3)
_DATE: Final = Form(MAX_TIMESTAMP_CHARS, _read_date, since=4)
_IMAGE_VOLUMES: Final = Form(MAX_IMAGE_VOLUMES_CHARS, _read_image_volumes, _write_image_volumes, since=5)


# --- tables ------------------------------------------------------------------------------------------------------


class PodLabels(msgspec.Struct, frozen=True, kw_only=True):
    """Decoded labels of a sandbox and of a container alike. A default counts where a label is empty or spoiled."""

    instance: str = ""
    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = ""
    grace_period_s: int = DEFAULT_GRACE_PERIOD_S
    attempt: int = 0
    hash: str = ""
    resources: ResourceRequirements | None = None


class SandboxLabels(PodLabels, frozen=True, kw_only=True):
    """Decoded labels of a Podman pod, or of its infra container."""

    host_network: bool = False
    active_since: str = ""


class ContainerLabels(PodLabels, frozen=True, kw_only=True):
    """Decoded labels of a container that is no infra container."""

    name: str = ""
    backoff_s: float = 0.0
    leaves_processes: bool = False
    pre_stop: LifecycleHandler | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    devices: Mapping[str, tuple[str, ...]] = {}
    image_volumes: Mapping[str, str] = {}


MIN_VERSION: Final = 2
"""Version of labels that are signed now, at least."""
_VERSIONS: Final = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5}
"""Versions of the set of signed labels, as a signature names them."""

Table = Mapping[str, tuple[str, Form]]
"""Field of the struct -> key and form of the label."""

_POD: Final[Table] = {
    "instance": (INSTANCE, _text(63)),
    "pod_name": (POD_NAME, _NAME),
    "pod_namespace": (POD_NAMESPACE, _NAME),
    "pod_uid": (POD_UID, _UID),
    "grace_period_s": (GRACE_PERIOD_S, _INT64),
    "attempt": (ATTEMPT, _ATTEMPT),
    "resources": (RESOURCES, _RESOURCES),
}
_NAMES: Final[Table] = {field: _POD[field] for field in ("pod_namespace", "pod_name")}
SANDBOX: Final[Table] = {
    **_POD,
    "hash": (SANDBOX_HASH, _HASH),
    "host_network": (HOST_NETWORK, _FLAG),
    "active_since": (ACTIVE_SINCE, _DATE),
}
"""Every label that is read from a sandbox, and so written on every sandbox."""
CONTAINER: Final[Table] = {
    **_POD,
    "hash": (CONTAINER_HASH, _HASH),
    "name": (CONTAINER_NAME, _NAME),
    "backoff_s": (BACKOFF_S, _BACKOFF),
    "leaves_processes": (LEAVES_PROCESSES, _FLAG),
    "pre_stop": (PRE_STOP, _HOOK),
    "termination_message_path": (TERMINATION_MESSAGE_PATH, _PATH),
    "termination_message_policy": (TERMINATION_MESSAGE_POLICY, _WORD),
    "devices": (DEVICES, _DEVICES),
    "image_volumes": (IMAGE_VOLUMES, _IMAGE_VOLUMES),
}
"""Every label that is read from a container, and so written on every container."""


def read_sandbox(found: Mapping[str, str]) -> SandboxLabels:
    """Labels of a Podman pod, or of its infra container."""
    return SandboxLabels(**_values(SANDBOX, found))


def read_container(found: Mapping[str, str]) -> ContainerLabels:
    """Labels of a container."""
    return ContainerLabels(**_values(CONTAINER, found))


def read_names(found: Mapping[str, str]) -> tuple[str, str]:
    """Namespace and name of the pod in the labels of a sandbox or a container."""
    named = PodLabels(**_values(_NAMES, found))
    return named.pod_namespace, named.pod_name


def read_uid(found: Mapping[str, str]) -> str:
    """Pod UID in labels; empty when there is none that could be one."""
    text = found.get(POD_UID, "")
    return text if len(text) <= _UID.max_chars and _is_read(_UID, text) else ""


def write(own: SandboxLabels | ContainerLabels) -> dict[str, str]:
    """All labels of the table, those without a value empty."""
    table = SANDBOX if isinstance(own, SandboxLabels) else CONTAINER
    return {key: form.write(getattr(own, field)) for field, (key, form) in table.items()}


def _values(table: Table, found: Mapping[str, str]) -> dict[str, Any]:
    version, values = signed_version(found), {}
    for field, (key, form) in table.items():
        text = found.get(key)
        if not text or len(text) > form.max_chars or form.since > version:
            continue
        try:
            values[field] = form.read(text)
        except UNDECODABLE:
            continue
    return values


def signed_version(found: Mapping[str, str]) -> int:
    """Version of the set of labels that the signature claims to be of; that of the first for one that is none."""
    version = found.get(SIGNATURE, "").partition(":")[0]
    return _VERSIONS.get(version, 1)


def version_of(table: Table, own: Mapping[str, str]) -> int:
    """The oldest version whose set of labels has all that are not empty: an agent that does not know the newest one
    then still knows most of what this one has made."""
    return max(form.since for key, form in table.values() if own.get(key) or form.since <= MIN_VERSION)


def signed_keys(table: Table) -> Mapping[int, tuple[str, ...]]:
    """Keys of the labels that a signature covers, by its version."""
    return {
        version: tuple(key for key, form in table.values() if form.since <= version) for version in _VERSIONS.values()
    }


def _is_read(form: Form, text: str) -> bool:
    try:
        form.read(text)
    except ValueError:
        return False
    return True
