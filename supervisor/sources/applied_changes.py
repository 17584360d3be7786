"""Applied objects after a patch, and whether they may be there already. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.annotations import CONFIG_HASH
from ipc.k8s.api.errors import FieldError, FieldErrors
from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ConfigObject
from ipc.link.messages.api_server import ApplyVerb
from supervisor.protocol.manifests import ManifestError, ManifestErrorKind, ManifestObject, ManifestPod, error_about
from supervisor.sources.objects.identity import LOCAL_ANNOTATIONS, Origin
from supervisor.sources.objects.kinds import decode_item

Item = ManifestPod | ManifestObject
Value = Pod | ConfigObject
API_VERSION = "rootlet.dev/v1alpha1"


def changed_object(present: Value, patch_type: str, patch: bytes, origin: Origin) -> Value:
    """The object after the patch, decoded and valid. Raises PatchError and FieldErrors."""
    from supervisor.patching.patches import patched  # for the few who need it: this process is small

    found = patched(_plain(present), patch, patch_type, present.kind)
    found.pop("status", None)
    changed = decode_item(found, origin)
    _same_object(changed, present)
    return changed


def merged(last: Value, item: Item, present: Value, origin: Origin) -> Item:
    """The item with what commands have changed of the present object since ``last`` was applied, as kubectl's apply
    keeps it: three-way merge patches, strategic ones for pods, but for what the item states as a whole. Raises
    PatchError and FieldErrors."""
    from ipc.k8s.patching.strategic_diff import three_way_patch
    from ipc.k8s.patching.strategic_merge import strategic_merge
    from supervisor.patching.desired import as_desired
    from supervisor.patching.json_merge import json_merge, three_way_json_merge_patch
    from supervisor.patching.patches import schema_of_kind

    original, modified, current = _plain(last), _plain(item.value), _plain(present)
    if isinstance(item, ManifestPod):
        schema = schema_of_kind("Pod")
        original, current = as_desired(original, modified, current, schema)
        found = strategic_merge(current, three_way_patch(original, modified, current, schema), schema)
    else:  # no list of theirs merges
        found = json_merge(current, three_way_json_merge_patch(original, modified, current))
    value = decode_item(found, origin)
    if isinstance(value, Pod):
        return ManifestPod(pod=value, file=item.file, document=item.document)
    return ManifestObject(object=value, file=item.file, document=item.document)


def _plain(value: Value) -> JsonObject:
    """The object without what this host adds."""
    found: JsonObject = msgspec.json.decode(msgspec.json.encode(value))
    annotations = found["metadata"].get("annotations", {})
    left = {key: text for key, text in annotations.items() if key not in LOCAL_ANNOTATIONS | {CONFIG_HASH}}
    found["metadata"].pop("annotations", None)
    if left:
        found["metadata"]["annotations"] = left
    return found


def _same_object(changed: Value, present: Value) -> None:
    """A patch changes an object: it does not make another one of it. Raises FieldErrors."""
    names = ("name", "namespace", "uid")
    stated = {"kind": (changed.kind, present.kind)} | {
        f"metadata.{name}": (getattr(changed.metadata, name), getattr(present.metadata, name)) for name in names
    }
    wrong = [
        FieldError(path, f'Invalid value: "{now}": field is immutable')
        for path, (now, was) in stated.items()
        if now != was
    ]
    if wrong:
        raise FieldErrors(wrong)


def presence_refused(items: Iterable[Item], present: Container[object], verb: ApplyVerb) -> tuple[ManifestError, ...]:
    """Errors for objects that are to be created and are there, or to be replaced and are not."""
    if verb == "create":
        there = (item for item in items if item.key in present)
        return tuple(
            error_about(item, ManifestErrorKind.EXISTS, "", f"{_named(item)} already exists") for item in there
        )
    if verb == "replace":
        absent = (item for item in items if item.key not in present)
        return tuple(error_about(item, ManifestErrorKind.ABSENT, "", f"{_named(item)} not found") for item in absent)
    return ()


def _named(item: Item) -> str:
    kind = item.value.kind.lower()
    return f'{kind}{"es" if kind.endswith("s") else "s"} "{item.value.metadata.name}"'


def shown(values: Iterable[Value], *, with_secrets: bool = False) -> str:
    """JSON array of the objects. A Secret is a summary of another kind there, so that nobody who applies what was shown
    makes an empty one of it."""
    return msgspec.json.encode([_shown(value, with_secrets) for value in values]).decode()


def _shown(value: Value, with_secrets: bool) -> object:
    if not isinstance(value, Secret) or with_secrets:
        return value
    sizes = {key: len(content) for key, content in value.data.items()}
    summary = {"apiVersion": API_VERSION, "kind": "SecretSummary", "metadata": value.metadata, "type": value.type}
    return {**summary, "dataSizes": sizes}
