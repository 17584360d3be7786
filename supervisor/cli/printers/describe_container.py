"""One container of `describe pod` (kubectl pkg/describe, describeContainers)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from supervisor.cli.printers.human import NONE, local_time

Json = Mapping[str, Any]

_L1: Final = "  "
_L2: Final = "    "
_L3: Final = "      "
_PROBES: Final = (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe"))
_KEYED: Final = re.compile(r"metadata\.(?P<kind>labels|annotations)\['(?P<key>[^']+)'\]")
_FIELDS: Final[Mapping[str, Callable[[Json], str]]] = {
    "metadata.name": lambda pod: pod["metadata"].get("name", ""),
    "metadata.namespace": lambda pod: pod["metadata"].get("namespace", ""),
    "metadata.uid": lambda pod: pod["metadata"].get("uid", ""),
}
"""What a description resolves; kubectl too leaves what only the kubelet knows empty."""


def describe_container(container: Json, status: Json | None, pod: Json) -> Iterator[str]:
    """Its lines, from its name to its mounts; ``status`` is None before the first report."""
    yield f"{_L1}{container['name']}:"
    yield from _basics(container, status)
    yield from _words("Command", container.get("command", ()))
    yield from _words("Args", container.get("args", ()))
    if status is not None:
        yield from _state_lines("State", status.get("state", {}))
        if status.get("lastState", {}).get("terminated"):
            yield from _state_lines("Last State", status["lastState"])
        yield f"{_L2}Ready:\t{bool(status.get('ready'))}"
        yield f"{_L2}Restart Count:\t{status.get('restartCount', 0)}"
    for title in ("limits", "requests"):
        yield from _resources(title, container.get("resources", {}).get(title, {}))
    for title, field in _PROBES:
        if container.get(field):
            yield f"{_L2}{title}:\t{describe_probe(container[field])}"
    yield from _env_from(container.get("envFrom", ()))
    yield from _env(container.get("env", ()), container, pod)
    yield from _mounts(container)


def _basics(container: Json, status: Json | None) -> Iterator[str]:
    if status is not None:
        yield f"{_L2}Container ID:\t{status.get('containerID', '')}"
    yield f"{_L2}Image:\t{container.get('image', '')}"
    if status is not None:
        yield f"{_L2}Image ID:\t{status.get('imageID', '')}"
    for title, field in (("Port", "containerPort"), ("Host Port", "hostPort")):
        ports = [_port(port, field) for port in container.get("ports", ())]
        yield f"{_L2}{title}{'s' if len(ports) > 1 else ''}:\t{', '.join(ports) or NONE}"
    profile = container.get("securityContext", {}).get("seccompProfile", {})
    if profile:
        yield f"{_L2}SeccompProfile:\t{profile.get('type', '')}"


def _port(port: Json, field: str) -> str:
    text = f"{port.get(field, 0)}/{port.get('protocol', 'TCP')}"
    return f"{text} ({port['name']})" if port.get("name") else text


def _words(title: str, words: Sequence[str]) -> Iterator[str]:
    if words:
        yield f"{_L2}{title}:"
    yield from (f"{_L3}{line}" for word in words for line in word.split("\n"))


def _state_lines(title: str, state: Json) -> Iterator[str]:
    if state.get("running") is not None:
        yield f"{_L2}{title}:\tRunning"
        yield f"{_L3}Started:\t{local_time(state['running'].get('startedAt'))}"
    elif state.get("terminated"):
        yield from _terminated(title, state["terminated"])
    else:
        yield f"{_L2}{title}:\tWaiting"
        reason = (state.get("waiting") or {}).get("reason")
        if reason:
            yield f"{_L3}Reason:\t{reason}"


def _terminated(title: str, ended: Json) -> Iterator[str]:
    yield f"{_L2}{title}:\tTerminated"
    for name in ("reason", "message"):
        if ended.get(name):
            yield f"{_L3}{name.capitalize()}:\t{ended[name]}"
    yield f"{_L3}Exit Code:\t{ended.get('exitCode', 0)}"
    if ended.get("signal"):
        yield f"{_L3}Signal:\t{ended['signal']}"
    yield f"{_L3}Started:\t{local_time(ended.get('startedAt'))}"
    yield f"{_L3}Finished:\t{local_time(ended.get('finishedAt'))}"


def _resources(title: str, amounts: Mapping[str, Any]) -> Iterator[str]:
    if amounts:
        yield f"{_L2}{title.capitalize()}:"
    yield from (f"{_L3}{name}:\t{amounts[name]}" for name in sorted(amounts))


def describe_probe(probe: Json) -> str:
    """One line (describe.go, DescribeProbe). Absent numbers are Kubernetes' defaults."""
    numbers = (
        f"delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 1)}s"
        f" period={probe.get('periodSeconds', 10)}s successThreshold={probe.get('successThreshold', 1)}"
        f" failureThreshold={probe.get('failureThreshold', 3)}"
    )
    return f"{_probe_action(probe)} {numbers}"


def _probe_action(probe: Json) -> str:
    if probe.get("exec"):
        return f"exec [{' '.join(probe['exec'].get('command', ()))}]"
    if probe.get("httpGet"):
        get = probe["httpGet"]
        path = get.get("path", "")
        scheme = get.get("scheme", "HTTP").lower()
        return f"http-get {scheme}://{get.get('host', '')}:{get['port']}{path if path[:1] == '/' else '/' + path}"
    if probe.get("tcpSocket"):
        return f"tcp-socket {probe['tcpSocket'].get('host', '')}:{probe['tcpSocket']['port']}"
    if probe.get("grpc"):
        return f"grpc <pod>:{probe['grpc']['port']} {probe['grpc'].get('service') or ''}"
    return "unknown"


def _env_from(sources: Sequence[Json]) -> Iterator[str]:
    if sources:
        yield f"{_L2}Environment Variables from:"
    for source in sources:
        kind, ref = (
            ("ConfigMap", source["configMapRef"]) if "configMapRef" in source else ("Secret", source["secretRef"])
        )
        prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
        yield f"{_L3}{ref.get('name', '')}\t{kind}{prefix}\tOptional: {_bool(ref)}"


def _env(variables: Sequence[Json], container: Json, pod: Json) -> Iterator[str]:
    yield f"{_L2}Environment:" + ("" if variables else f"\t{NONE}")
    for variable in variables:
        if variable.get("valueFrom"):
            yield f"{_L3}{variable['name']}:\t{_value_from(variable['valueFrom'], container, pod)}"
            continue
        head, *tail = variable.get("value", "").split("\n")
        yield f"{_L3}{variable['name']}:\t{head}"
        yield from (f"{_L3}\t{line}" for line in tail)


def _value_from(source: Json, container: Json, pod: Json) -> str:
    """What stands for the value; a secret's never does."""
    if "fieldRef" in source:
        ref = source["fieldRef"]
        return f"{_field(pod, ref['fieldPath'])} ({ref.get('apiVersion', 'v1')}:{ref['fieldPath']})"
    if "resourceFieldRef" in source:
        name = source["resourceFieldRef"]["resource"]
        kind, _, resource = name.partition(".")
        amount = container.get("resources", {}).get(kind, {}).get(resource, "")
        return f"{amount or ('node allocatable' if kind == 'limits' else '0')} ({name})"
    for field, words in (("secretKeyRef", "in secret"), ("configMapKeyRef", "of config map")):
        if field in source:
            ref = source[field]
            return f"<set to the key '{ref['key']}' {words} '{ref.get('name', '')}'>\tOptional: {_bool(ref)}"
    return ""


def _field(pod: Json, path: str) -> str:
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return str(pod["metadata"].get(keyed["kind"], {}).get(keyed["key"], ""))
    return _FIELDS[path](pod) if path in _FIELDS else ""


def _bool(ref: Json) -> str:
    return str(bool(ref.get("optional"))).lower()


def _mounts(container: Json) -> Iterator[str]:
    mounts = sorted(container.get("volumeMounts", ()), key=lambda m: str(m["mountPath"]))
    yield f"{_L2}Mounts:" + ("" if mounts else f"\t{NONE}")
    for mount in mounts:
        flags = "ro" if mount.get("readOnly") else "rw"
        flags += f",path={json.dumps(mount['subPath'])}" if mount.get("subPath") else ""
        yield f"{_L3}{mount['mountPath']} from {mount['name']} ({flags})"
    devices = container.get("volumeDevices", ())
    if devices:
        yield f"{_L2}Devices:"
    yield from (f"{_L3}{device['devicePath']} from {device['name']}" for device in devices)
