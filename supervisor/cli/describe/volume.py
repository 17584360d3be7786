"""One volume of `describe pod` (kubectl pkg/describe, describeVolumes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE

_FACTS: Final[Mapping[str, tuple[tuple[str, str, object], ...]]] = {
    "hostPath": (("Path", "path", ""), ("HostPathType", "type", NONE)),
    "emptyDir": (("Medium", "medium", ""), ("SizeLimit", "sizeLimit", "<unset>")),
    "secret": (("SecretName", "secretName", ""), ("Optional", "optional", False)),
    "configMap": (("Name", "name", ""), ("Optional", "optional", False)),
    "persistentVolumeClaim": (("ClaimName", "claimName", ""), ("ReadOnly", "readOnly", False)),
    "ephemeral": (),
    "image": (("Reference", "reference", ""), ("PullPolicy", "pullPolicy", "")),
    "projected": (),
    "downwardAPI": (),
}
"""Per type: the title, the field and what stands for an absent one. A type that is missing here is only named."""
_TYPES: Final[Mapping[str, str]] = {
    "hostPath": "HostPath (bare host directory volume)",
    "emptyDir": "EmptyDir (a temporary directory that shares a pod's lifetime)",
    "secret": "Secret (a volume populated by a Secret)",
    "configMap": "ConfigMap (a volume populated by a ConfigMap)",
    "persistentVolumeClaim": "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
    "ephemeral": "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)",
    "image": "Image (a container image or OCI artifact)",
    "projected": "Projected (a volume that contains injected data from multiple sources)",
    "downwardAPI": "DownwardAPI (a volume populated by information about the pod)",
}
_PROJECTED: Final[Mapping[str, tuple[tuple[str, str, object], ...]]] = {
    "secret": (("SecretName", "name", ""), ("Optional", "optional", False)),
    "configMap": (("ConfigMapName", "name", ""), ("Optional", "optional", False)),
    "serviceAccountToken": (("TokenExpirationSeconds", "expirationSeconds", 3600),),
}


def describe_volume(volume: Json) -> Iterator[str]:
    """Lines of a volume."""
    kind = next((key for key in volume if key != "name"), "emptyDir")
    source = volume.get(kind) or {}
    yield f"  {volume['name']}:"
    yield f"    Type:\t{_TYPES.get(kind, f'{kind[:1].upper()}{kind[1:]}')}"
    yield from _facts(_FACTS.get(kind, ()), source)
    if kind == "downwardAPI":
        yield from _items(source)
    for part in source.get("sources", ()) if kind == "projected" else ():
        yield from _projection(part)


def _facts(table: tuple[tuple[str, str, object], ...], source: Json) -> Iterator[str]:
    for title, field, absent in table:
        value = source.get(field, absent)
        yield f"    {title}:\t{str(value).lower() if isinstance(value, bool) else value}"


def _items(source: Json) -> Iterator[str]:
    yield "    Items:"
    for item in source.get("items", ()):
        what = item.get("fieldRef", {}).get("fieldPath") or item.get("resourceFieldRef", {}).get("resource", "")
        yield f"      {what} -> {item.get('path', '')}"


def _projection(part: Json) -> Iterator[str]:
    for kind, source in part.items():
        yield from _facts(_PROJECTED.get(kind, ()), source)
        if kind == "downwardAPI":
            yield "    DownwardAPI:\ttrue"
