"""Manifests out of the v1 types and a seed: plausible enough to be accepted now and then, hostile everywhere else."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ipc.k8s.api.schema import Kind, Shape, StructField, literal_values, shape_of, struct_fields
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.pod import PodSpec
from tests.support.pods import IMAGE

PLANTED: Final = "planted-secret-value"
"""Stands in every Secret: it must come to light nowhere."""
NAMES: Final = ("a", "b", "c")
"""Few, so that what refers to something often finds it."""
PATHS: Final = ("/data", "/data/below", "sub", "sub/dir/file", "x.conf", "/etc/hosts")
HOSTILE: Final = (
    "",
    ".",
    "..",
    "../..",
    "../../../../tmp/rootlet-escaped",
    "/",
    "/proc/self/root/tmp/rootlet-escaped",
    "a/../../b",
    "a//b/./c",
    "..data",
    "..2026_escaped",
    "-rf",
    "a\0b",
    "a\nb: c",
    "\x1b[31mred",
    "$(HOME)$(a)$$(b)",
    "{{7*7}}%s%n",
    "\ud7ff\uffff\u202e",
    "name with spaces",
    "UPPER",
    "é" * 40,
    "x" * 300,
    "k=v,other",
    "*",
    "0x10",
    "1e400",
    "NaN",
)
NUMBERS: Final = (0, 1, 2, 30, 80, 420, 1000, 8080, 65_535)
EXTREME: Final = (-1, 65_536, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 10**30)
QUANTITIES: Final = ("1", "100m", "64Mi", "1Gi", "0")
MAX_DEPTH: Final = 7
TAME: Final = 0.7
"""Part of the pods that have only fields that can be acted on, with volumes that lead astray."""
TAME_SPEC: Final = frozenset({"restartPolicy", "terminationGracePeriodSeconds", "hostname", "subdomain", "hostAliases"})
TAME_CONTAINER: Final = frozenset({"name", "image", "command", "args", "workingDir", "tty", "stdin", "resources"})
MIB: Final = 1 << 20

_PLAUSIBLE: Final[Mapping[str, Sequence[Any]]] = {
    "apiVersion": ("v1",),
    "image": (IMAGE,),
    "reference": (IMAGE,),
    "imagePullPolicy": ("IfNotPresent", "Never"),
    "path": PATHS,
    "mountPath": ("/data", "/config", "/etc/app"),
    "subPath": ("sub", "x.conf"),
    "subPathExpr": ("$(A)", "sub"),
    "fieldPath": ("metadata.name", "metadata.labels['a']", "status.podIP", "spec.nodeName"),
    "resource": ("limits.cpu", "requests.memory"),
    "ip": ("10.0.0.1", "::1"),
    "key": NAMES,
    "medium": ("", "Memory"),
}


class Maker:
    """One seed's manifests."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._hostility = self._rng.choice((0.0, 0.02, 0.2))
        self._richness = self._rng.choice((0.05, 0.15, 0.3))

    def file(self) -> bytes:
        """Some documents as a manifest file has them."""
        documents = [self._pod(), *(self._object(kind) for kind in (ConfigMap, Secret) if self._rng.random() < 0.7)]
        if self._rng.random() < 0.1:
            documents.append(self._anything())
        self._rng.shuffle(documents)
        return b"\n---\n".join(msgspec.json.encode(document) for document in documents)

    def _pod(self) -> dict[str, Any]:
        spec = self._struct(PodSpec, 1)
        containers = spec.get("containers")
        if not isinstance(containers, list) or not all(isinstance(each, dict) for each in containers):
            containers = [{}]
        named = [{**each, "name": NAMES[number], "image": IMAGE} for number, each in enumerate(containers)]
        metadata = self._metadata({key: {self._text("key"): self._text("value")} for key in ("labels", "annotations")})
        made = {**spec, "containers": named}
        if self._rng.random() < TAME:
            made = self._tamed(made)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made}

    def _tamed(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Without what is refused nearly always, and with volumes: so that something is left to carry out."""
        kept = {key: value for key, value in spec.items() if key in TAME_SPEC}
        volumes = [{"name": name, **self._source()} for name in NAMES if self._rng.random() < 0.5]
        containers = [
            self._tamed_container(each, [volume["name"] for volume in volumes]) for each in spec["containers"]
        ]
        return {**kept, "volumes": volumes, "containers": containers}

    def _tamed_container(self, container: dict[str, Any], volumes: Sequence[str]) -> dict[str, Any]:
        kept = {key: value for key, value in container.items() if key in TAME_CONTAINER}
        secret = {"secretKeyRef": {"name": "a", "key": "a", "optional": True}}
        env: list[dict[str, Any]] = [{"name": "A", "value": self._text("value")}, {"name": "S", "valueFrom": secret}]
        mounts = [self._mount(name) for name in volumes if self._rng.random() < 0.8]
        return {**kept, "env": env, "volumeMounts": mounts}

    def _mount(self, volume: str) -> dict[str, Any]:
        sub = self._rng.choice(({}, {"subPath": self._path()}, {"subPathExpr": self._path()}))
        return {"name": volume, "mountPath": f"/mounted/{volume}", **sub}

    def _source(self) -> dict[str, Any]:
        item = {"key": self._text("key"), "path": self._path()}
        of_object = {"optional": True, "items": [item]}
        downward = {"items": [{"path": self._path(), "fieldRef": {"fieldPath": "metadata.name"}}]}
        name = {"name": self._rng.choice(NAMES)}
        kinds: tuple[dict[str, Any], ...] = (
            {"emptyDir": {}},
            {"configMap": {**name, **of_object}},
            {"secret": {"secretName": name["name"], **of_object}},
            {"downwardAPI": downward},
            {"projected": {"sources": [{"secret": {**name, **of_object}}, {"downwardAPI": downward}]}},
        )
        return self._rng.choice(kinds)

    def _path(self) -> str:
        """Hostile half of the time: it is what these files are about."""
        return self._rng.choice(HOSTILE) if self._rng.random() < 0.3 else self._rng.choice(("sub", "x.conf", "sub/dir"))

    def _object(self, kind: type[ConfigMap] | type[Secret]) -> dict[str, Any]:
        keys = [self._text("key") for _ in range(self._rng.randint(0, 3))]
        value = PLANTED if kind is Secret else "plain"
        large = "x" * MIB if self._rng.random() < self._hostility else value
        name = "stringData" if kind is Secret else "data"
        made: dict[str, Any] = {name: dict.fromkeys(keys, large)}
        if kind is Secret and self._rng.random() < self._hostility:
            made["data"] = {"a": f"{PLANTED}!"}
        return {"apiVersion": "v1", "kind": kind.__name__, "metadata": self._metadata({}), **made}

    def _metadata(self, more: Mapping[str, Any]) -> dict[str, Any]:
        return {**more, "name": self._text("name"), **({"namespace": "x"} if self._rng.random() < 0.1 else {})}

    # --- by type ---

    def _struct(self, struct: type[msgspec.Struct], depth: int) -> dict[str, Any]:
        fields = struct_fields(struct).values()
        made = {field.name: self._value(field, depth) for field in fields if self._is_set(field, depth)}
        if self._rng.random() < self._hostility:
            made[self._rng.choice(("unknown", "Name", " "))] = self._anything()
        return made

    def _is_set(self, field: StructField, depth: int) -> bool:
        return field.required or (depth < MAX_DEPTH and self._rng.random() < self._richness)

    def _value(self, field: StructField, depth: int) -> Any:
        if self._rng.random() < self._hostility:
            return self._anything()
        return self._shaped(field.name, field.shape, depth + 1)

    def _shaped(self, name: str, shape: Shape, depth: int) -> Any:
        match shape.kind:
            case Kind.STRUCT:
                return self._struct(shape.inner, depth)
            case Kind.LIST:
                return [self._shaped(name, shape_of(shape.inner), depth) for _ in range(self._rng.randint(1, 2))]
            case Kind.MAP:
                return {self._text("key"): self._shaped(name, shape_of(shape.inner), depth)}
            case Kind.FREE_FORM:
                return {}
        return self._leaf(name, shape.inner)

    def _leaf(self, name: str, annotation: Any) -> Any:
        if words := literal_values(annotation):
            return self._rng.choice(words)
        text = str(annotation)
        if "bool" in text:
            return self._rng.random() < 0.5
        if "Quantity" in text or "float" in text:
            return self._rng.choice(QUANTITIES)
        if "int" in text:
            return self._rng.choice(EXTREME if self._rng.random() < self._hostility else NUMBERS)
        return self._text(name)

    def _text(self, name: str) -> str:
        if self._rng.random() < self._hostility:
            return self._rng.choice(HOSTILE)
        return str(self._rng.choice(_PLAUSIBLE.get(name, NAMES)))

    def _anything(self) -> Any:
        deep: Any = []
        for _ in range(50):
            deep = [deep]
        return self._rng.choice((None, True, -1, 1e300, "", *HOSTILE, [], {}, [{}], {"a": None}, deep))
