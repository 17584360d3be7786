"""Values that a pod gets from its cluster beside objects: variables of services, tokens, trust anchors, and the
volumes of its claims. Pure.

They are made by what speaks to the cluster, in the node worker, and travel as messages. No repr says a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.projected import ClusterTrustBundleProjection, ServiceAccountTokenProjection, VolumeProjection
from ipc.k8s.podobjects.pod_claims import PodClaim
from ipc.k8s.podobjects.registry_login import PullAccount

DEFAULT_EXPIRATION_S: Final = 3600
"""Lifetime of a token whose projection says none, in seconds (core/v1 defaults.go,
SetDefaults_ServiceAccountTokenProjection)."""


class TokenRequest(msgspec.Struct, frozen=True, order=True):
    """A token that a pod wants of its service account."""

    audience: str
    """Empty: the API server's own."""
    expiration_s: int


class PodToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it was issued, or why there is none."""

    wish: TokenRequest
    token: str = ""
    problem: str = ""
    """Why there is none; empty with a token."""

    def __repr__(self) -> str:
        return f"PodToken({self.wish}, {self.problem or f'{len(self.token)} characters'})"


class TrustAnchors(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates of one projected source, or why there are none."""

    wish: ClusterTrustBundleProjection
    pem: str = ""
    problem: str = ""


class ClusterValues(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one pod."""

    service_variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Environment variables that name services (pkg/kubelet/kubelet_pods.go, getServiceEnvVarMap)."""
    tokens: tuple[PodToken, ...] = ()
    trust_anchors: tuple[TrustAnchors, ...] = ()
    claims: Mapping[str, PodClaim] = msgspec.field(default_factory=dict)
    """Volumes behind the claims of the pod, by the name of the pod's volume."""

    account: PullAccount | None = None
    """The pod's service account, where a provider of logins for its images wants to know it."""

    def token(self, wish: TokenRequest) -> PodToken | None:
        """None while nobody has asked for it."""
        return next((found for found in self.tokens if found.wish == wish), None)

    def anchors(self, wish: ClusterTrustBundleProjection) -> TrustAnchors | None:
        """None while nobody has asked for them."""
        return next((found for found in self.trust_anchors if found.wish == wish), None)

    def same_files(self, other: ClusterValues) -> bool:
        """Whether no volume differs: variables are read when a container starts."""
        return (self.tokens, self.trust_anchors, self.claims) == (other.tokens, other.trust_anchors, other.claims)


NO_VALUES: Final = ClusterValues()
"""Values of a pod that has none."""


def token_request(source: ServiceAccountTokenProjection) -> TokenRequest:
    """The token that one source of a projected volume wants."""
    return TokenRequest(source.audience, source.expiration_seconds or DEFAULT_EXPIRATION_S)


def token_requests(pod: Pod) -> tuple[TokenRequest, ...]:
    """Every token that the volumes of a pod want, each once, in order."""
    sources = (source.service_account_token for source in _sources(pod))
    return tuple(dict.fromkeys(token_request(source) for source in sources if source is not None))


def trust_projections(pod: Pod) -> tuple[ClusterTrustBundleProjection, ...]:
    """Every set of trust anchors that the volumes of a pod want, in order."""
    return tuple(found for source in _sources(pod) if (found := source.cluster_trust_bundle) is not None)


def _sources(pod: Pod) -> Iterator[VolumeProjection]:
    return (
        source for volume in pod.spec.volumes if volume.projected is not None for source in volume.projected.sources
    )
