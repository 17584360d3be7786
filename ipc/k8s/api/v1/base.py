"""The base of every v1 Struct, its JSON names, and the scalar types of the Kubernetes API.

Go's zero value and an absent field are the same thing in Kubernetes JSON, so a field that is no pointer upstream has
its zero value as default (`""`, `0`, `()`, an empty mapping), and a pointer has `None`.
"""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
IntOrString = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | str
"""A number, or the name of a container port (apimachinery intstr.IntOrString)."""
FilePath = Annotated[str, msgspec.Meta(max_length=4096)]
"""A path, absolute or not: no longer than the kernel takes one (PATH_MAX), here in characters."""
ImageText = Annotated[str, msgspec.Meta(max_length=1024)]
"""The name of an image, well-formed or not: no longer than one that is looked at (`ipc.k8s.api.image`), in
characters."""
Quantity = str | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | float
"""A resource amount as written; `ipc.k8s.api.quantity.parse_quantity` gives its value."""
ResourceList = Mapping[str, Quantity]
Time = str
"""RFC 3339, as it stands in the JSON."""
Empty = Literal[""]
"""The zero value of an enumeration that has a default: not chosen yet."""

# Go's initialisms: the names that plain camelCase would get wrong.
_JSON_NAMES: Final[Mapping[str, str]] = {
    "container_id": "containerID",
    "continue_": "continue",
    "dataset_uuid": "datasetUUID",
    "disk_uri": "diskURI",
    "downward_api": "downwardAPI",
    "host_ip": "hostIP",
    "host_ipc": "hostIPC",
    "host_ips": "hostIPs",
    "host_pid": "hostPID",
    "image_id": "imageID",
    "pd_id": "pdID",
    "pod_ip": "podIP",
    "pod_ips": "podIPs",
    "resource_id": "resourceID",
    "scale_io": "scaleIO",
    "selinux_change_policy": "seLinuxChangePolicy",
    "selinux_options": "seLinuxOptions",
    "set_hostname_as_fqdn": "setHostnameAsFQDN",
    "storage_policy_id": "storagePolicyID",
    "target_wwns": "targetWWNs",
    "volume_id": "volumeID",
}


def json_name(attribute: str) -> str:
    """The JSON name of a Struct attribute: camelCase, with Go's initialisms."""
    head, *tail = attribute.split("_")
    return _JSON_NAMES.get(attribute) or head + "".join(word.capitalize() for word in tail)


class ApiStruct(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename=json_name,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """A v1 type: immutable, keyword-only, camelCase in JSON, an unknown field is an error, zero values are left out.

    Trees of values have no cycle that the garbage collector would have to look for.
    """


def always(value: Any) -> Any:
    """A default that is written even so: Go has no `omitempty` there and kubectl shows it (`state: {}`)."""
    return msgspec.field(default_factory=itertools.repeat(value).__next__)  # which is no call of Python's
