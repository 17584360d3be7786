"""ConfigMap and Secret (core/v1): what stands beside pods in manifests."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, always
from ipc.k8s.api.v1.meta import ObjectMeta

OPAQUE: Final = "Opaque"
"""The type of a Secret that says none."""


class ConfigMap(ApiStruct, frozen=True, kw_only=True):
    """Configuration by key; no key stands in both maps."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["ConfigMap"] = always("ConfigMap")
    metadata: ObjectMeta = always(ObjectMeta())
    data: Mapping[str, str] = field(default_factory=dict)
    binary_data: Mapping[str, bytes] = field(default_factory=dict)
    """Base64 in JSON."""
    immutable: bool | None = None


class Secret(ApiStruct, frozen=True, kw_only=True):
    """Confidential data, readable only by the pods that are given it. Its repr says names and sizes, never values."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Secret"] = always("Secret")
    metadata: ObjectMeta = always(ObjectMeta())
    data: Mapping[str, bytes] = field(default_factory=dict)
    """Base64 in JSON."""
    string_data: Mapping[str, str] = field(default_factory=dict)
    """For writing only: decoding moves it into ``data``."""
    type: str = ""
    """Meaning of the keys; free, but for the types that `validate_secret` knows."""
    immutable: bool | None = None

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{key}: {len(value)} bytes" for key, value in (*self.data.items(), *self.string_data.items())
        )
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, {self.type}, {{{sizes}}})"
