"""Signatures of labels: a keyed digest binds them to this agent and to the one container that carries them.

Everybody with access to the user's Podman can put our labels on a container of theirs, an image can bring them, and
`podman inspect` shows them to be copied. So all labels that are acted on are signed together with the name of what
bears them, which Podman lets only one container have. A copy has another name, so its signature does not hold. Under
the same name there can be a copy only when ours is gone: then the user has removed ours and put another in its place
by intent, and users may do with their containers what they please.

What is older than the key was made before there were signatures, or with a key that was lost. It is adopted when its
name is the one that its labels lead to: dates are Podman's, so neither an image nor a command line chooses them.

The version of the set of signed labels is written before the digest. A larger set gets a new version, and older ones
are still read: containers that were signed with them must stay known, and have none of the new labels.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.label_key import SANDBOX_WORD, LabelKey, signature
from workers.kubecontainer import labels
from workers.kubecontainer.naming import container_name_of, infra_name_of, sandbox_name_of
from workers.kubecontainer.runtime import InspectedContainer, InspectedPod, ListedContainer, ListedPod


class _Kind(msgspec.Struct, frozen=True):
    """Sandboxes and containers are signed apart: one cannot speak for the other."""

    word: str
    table: labels.Table
    keys: Mapping[int, tuple[str, ...]]
    """Version of a signature -> the labels that it covers, in this order."""
    name_of: Callable[[Mapping[str, str]], str]
    """The name that goes with the labels."""


_SANDBOX: Final = _Kind(
    SANDBOX_WORD,
    labels.SANDBOX,
    labels.signed_keys(labels.SANDBOX),
    lambda found: sandbox_name_of(labels.read_sandbox(found)),
)
_CONTAINER: Final = _Kind(
    "container",
    labels.CONTAINER,
    labels.signed_keys(labels.CONTAINER),
    lambda found: container_name_of(labels.read_container(found)),
)


class Ownership(msgspec.Struct, frozen=True, kw_only=True):
    """Signs the containers that this agent makes, and recognizes them in what Podman shows."""

    instance: str
    key: LabelKey

    def signed_sandbox(self, name: str, own: Mapping[str, str]) -> dict[str, str]:
        """The labels of the Podman pod of that name, and so of its infra container, with their signature."""
        return self._signed(_SANDBOX, name, own)

    def signed_container(self, name: str, own: Mapping[str, str]) -> dict[str, str]:
        """The labels of the container of that name, with their signature."""
        return self._signed(_CONTAINER, name, own)

    def owns_pod(self, found: ListedPod | InspectedPod) -> bool:
        """Whether this agent has made that Podman pod."""
        return self._owns(_SANDBOX, found.name, found.labels, found.created_at)

    def owns(self, found: ListedContainer | InspectedContainer) -> bool:
        """Whether this agent has made that container; an infra container is its sandbox's."""
        if not found.is_infra:
            return self._owns(_CONTAINER, found.name, found.labels, found.created_at)
        sandbox = found.name.removesuffix(infra_name_of(""))
        return sandbox != found.name and self._owns(_SANDBOX, sandbox, found.labels, found.created_at)

    def _signed(self, kind: _Kind, name: str, own: Mapping[str, str]) -> dict[str, str]:
        return {**own, labels.SIGNATURE: self._signature(kind, name, own, labels.version_of(kind.table, own))}

    def _owns(self, kind: _Kind, name: str, found: Mapping[str, str], created_at: float) -> bool:
        if found.get(labels.INSTANCE) != self.instance:
            return False
        if labels.SIGNATURE in found and self._is_signed(kind, name, found):
            return True
        return 0.0 < created_at < self.key.made_at and name == kind.name_of(found)

    def _is_signed(self, kind: _Kind, name: str, found: Mapping[str, str]) -> bool:
        try:
            expected = self._signature(kind, name, found, labels.signed_version(found))
            return hmac.compare_digest(found[labels.SIGNATURE].encode(), expected.encode())
        except UnicodeEncodeError:  # a lone surrogate, which we write on nothing
            return False

    def _signature(self, kind: _Kind, name: str, found: Mapping[str, str], version: int) -> str:
        values = [(key, found.get(key, "")) for key in kind.keys[version]]
        return signature(self.key, str(version), kind.word, name, values)
