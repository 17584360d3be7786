"""Resource requests, limits and claims."""

from typing import Literal

from msgspec import field

from ipc.api.v1.base import ApiStruct, ResourceList

ResourceResizeRestartPolicy = Literal["NotRequired", "RestartContainer"]


class ResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A container's use of one of the pod's claims."""

    name: str
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    """Requests, limits and claims by resource name."""

    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)
    claims: tuple[ResourceClaim, ...] = ()


class ContainerResizePolicy(ApiStruct, frozen=True, kw_only=True):
    """What a resize of one resource does to the container."""

    resource_name: str
    restart_policy: ResourceResizeRestartPolicy
