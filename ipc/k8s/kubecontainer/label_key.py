"""The key by which an agent knows its own labels: made once, kept in its state directory, given to its workers."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

SECRET_BYTES: Final = 32
INSTANCE: Final = "rootlet.dev/instance"
GRACE_PERIOD_S: Final = "rootlet.dev/termination-grace-period-seconds"
POD_NAME: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
SIGNATURE: Final = "rootlet.dev/signature"
SANDBOX_WORD: Final = "sandbox"
"""Part of a signature: sandboxes and containers are signed apart."""
_SANDBOX: Final = (
    INSTANCE,
    POD_NAME,
    POD_NAMESPACE,
    "io.kubernetes.pod.uid",
    GRACE_PERIOD_S,
    "rootlet.dev/attempt",
)
_SANDBOX_END: Final = ("rootlet.dev/sandbox-hash", "rootlet.dev/host-network")
SANDBOX_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "1": (*_SANDBOX, *_SANDBOX_END),
    "2": (*_SANDBOX, "rootlet.dev/resources", *_SANDBOX_END),
    "3": (*_SANDBOX, "rootlet.dev/resources", *_SANDBOX_END),
    "4": (*_SANDBOX, "rootlet.dev/resources", *_SANDBOX_END, "rootlet.dev/active-since"),
    "5": (*_SANDBOX, "rootlet.dev/resources", *_SANDBOX_END, "rootlet.dev/active-since"),
}
"""Version of a sandbox's signature -> the labels that it covers (`workers.kubecontainer.labels` has their forms)."""


class LabelKey(msgspec.Struct, frozen=True, kw_only=True):
    """A secret, and since when everything of ours is signed with it. Its text form keeps the secret to itself."""

    secret: bytes
    made_at: float
    """Epoch seconds. Containers that are older carry no signature of this key."""

    def __repr__(self) -> str:
        return f"LabelKey(made_at={self.made_at!r})"


def signature(key: LabelKey, version: str, word: str, name: str, values: Sequence[tuple[str, str]]) -> str:
    """The signature of labels of what has that name. JSON keeps the parts apart, whatever is in them.

    Raises UnicodeEncodeError for a lone surrogate.
    """
    signed = msgspec.json.encode((version, word, name, values))
    return f"{version}:{hmac.digest(key.secret, signed, 'sha256').hex()}"


def signs_sandbox(key: LabelKey, name: str, found: Mapping[str, str]) -> bool:
    """Whether the labels of the Podman pod of that name are signed with the key."""
    given = found.get(SIGNATURE, "")
    version = given.partition(":")[0]
    try:
        values = [(each, found.get(each, "")) for each in SANDBOX_KEYS.get(version, ())]
        return bool(values) and hmac.compare_digest(
            given.encode(), signature(key, version, SANDBOX_WORD, name, values).encode()
        )
    except UnicodeEncodeError:
        return False
