"""Trust anchors of projected volumes: ClusterTrustBundles by name, or by signer and labels
(pkg/kubelet/clustertrustbundle). They are watched from the first pod on that wants some."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.api.v1.meta import LabelSelector
from ipc.k8s.api.v1.projected import ClusterTrustBundleProjection
from ipc.k8s.podobjects.cluster_values import TrustAnchors
from workers.kubeclient.protocol import Client
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import CLUSTER_TRUST_BUNDLES

_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")


class BundleMeta(msgspec.Struct, frozen=True):
    """Name of the bundle."""

    name: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class BundleSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Certificates, and whose they are."""

    signer_name: str = ""
    trust_bundle: str = ""


class Bundle(msgspec.Struct, frozen=True):
    """A certificates.k8s.io ClusterTrustBundle, as far as volumes show it."""

    metadata: BundleMeta
    spec: BundleSpec = BundleSpec()


class TrustBundles:
    """A copy of the bundles; the sink of its reflector."""

    def __init__(self, client: Client, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._found: dict[str, Bundle] = {}
        decode = msgspec.json.Decoder(Bundle).decode
        self._reflector = Reflector[Bundle](client, CLUSTER_TRUST_BUNDLES, decode=decode, sink=self)
        self._is_read = False

    async def run(self) -> None:
        """Follow the server for ever."""
        await self._reflector.run()

    def begin_anew(self) -> None:
        """List everything, whatever its version."""
        self._reflector.begin_anew()

    def anchors(self, wish: ClusterTrustBundleProjection) -> TrustAnchors:
        """Anchors that the bundles have for a source of a volume."""
        if not self._is_read:
            return TrustAnchors(wish=wish, problem="ClusterTrustBundles have not yet been read at least once")
        return selected(self._found.values(), wish)

    def replaced(self, items: Sequence[Bundle]) -> None:
        self._found = {item.metadata.name: item for item in items}
        self._is_read = True
        self._changed()

    def changed(self, item: Bundle) -> None:
        self._found[item.metadata.name] = item
        self._changed()

    def deleted(self, item: Bundle) -> None:
        self._found.pop(item.metadata.name, None)
        self._changed()


def selected(bundles: Iterable[Bundle], wish: ClusterTrustBundleProjection) -> TrustAnchors:
    """Anchors of the bundles that a source means: each once, in the order of the bundles' names."""
    means = _by_name(wish) if wish.name is not None else _by_signer(wish)
    found = sorted((bundle for bundle in bundles if means(bundle)), key=lambda bundle: bundle.metadata.name)
    blocks = dict.fromkeys(block for bundle in found for block in _BLOCK.findall(bundle.spec.trust_bundle))
    if not blocks and not wish.optional:
        what = f'name "{wish.name}"' if wish.name is not None else f'signer name "{wish.signer_name}"'
        return TrustAnchors(wish=wish, problem=f"no trust anchors of {what}")
    return TrustAnchors(wish=wish, pem="".join(f"{block}\n" for block in blocks))


def _by_name(wish: ClusterTrustBundleProjection) -> Callable[[Bundle], bool]:
    return lambda bundle: bundle.metadata.name == wish.name


def _by_signer(wish: ClusterTrustBundleProjection) -> Callable[[Bundle], bool]:
    """No selector means none, an empty one all."""
    selector = wish.label_selector
    return lambda bundle: (
        bundle.spec.signer_name == wish.signer_name
        and selector is not None
        and _matches(selector, bundle.metadata.labels)
    )


def _matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """metav1.LabelSelectorAsSelector."""
    if any(labels.get(name) != value for name, value in selector.match_labels.items()):
        return False
    for wanted in selector.match_expressions:
        is_there, is_one = wanted.key in labels, labels.get(wanted.key) in wanted.values
        holds = {"In": is_there and is_one, "NotIn": not is_one, "Exists": is_there, "DoesNotExist": not is_there}
        if not holds[wanted.operator]:
            return False
    return True
