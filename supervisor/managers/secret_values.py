"""Blocks by which Secrets' values are recognised, also those that a running container may still have. Pure state.

A container keeps in its environment what a Secret said when it was made, so that values that were replaced are kept
for a while: in memory, the newest of all Secrets up to a maximum. An agent that was restarted does not know them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.podobjects.config_objects import ObjectKey
from ipc.k8s.podobjects.redaction import MAX_VALUES_BYTES, Blocks, blocks_of, values_size

MAX_FORMER_BYTES: Final = 1 << 20
"""Most that replaced Secrets take together, values and a fixed cost each; the oldest go first."""
FORMER_COST_BYTES: Final = 512
"""Fixed cost of a replaced Secret beside its values, in bytes."""
MAX_KEPT_BYTES: Final = 1 << 20
"""So many bytes of values have their blocks kept; those of others are made anew when a text asks for them."""


class SecretValues:
    """Former Secrets, and the blocks of those that were asked for last."""

    def __init__(self) -> None:
        self._former: OrderedDict[int, tuple[ObjectKey, Secret]] = OrderedDict()
        """Oldest first."""
        self._former_of: dict[ObjectKey, OrderedDict[int, Secret]] = {}
        """Former Secrets by key, oldest first."""
        self._former_bytes = 0
        self._count = 0
        self._blocks: OrderedDict[int, tuple[Secret, Blocks]] = OrderedDict()
        """By the Secret's identity; longest unused first."""
        self._blocks_bytes = 0

    def replaced(self, key: ObjectKey, secret: Secret) -> None:
        """The Secret was replaced or removed: its former values are remembered."""
        self._count += 1
        self._former[self._count] = key, secret
        self._former_of.setdefault(key, OrderedDict())[self._count] = secret
        self._former_bytes += _cost(secret)
        while self._former_bytes > MAX_FORMER_BYTES:
            self._forget_oldest()

    def known_by(self, current: Iterable[tuple[ObjectKey, Secret | None]]) -> tuple[Blocks, ...] | None:
        """Blocks by which the values and former values of these Secrets of one pod are recognised; None when the
        present values are too large. Former ones for which there is no room are left out, the oldest first."""
        found = list(current)
        secrets = [secret for _, secret in found if secret is not None]
        room = MAX_VALUES_BYTES - sum(map(values_size, secrets))
        if room < 0:
            return None
        former = sorted((item for key, _ in found for item in self._former_of.get(key, {}).items()), reverse=True)
        for _, secret in former:
            room -= _cost(secret)
            if room < 0:
                break
            secrets.append(secret)
        return tuple(map(self._blocks_of, secrets))

    def _forget_oldest(self) -> None:
        number, (key, secret) = self._former.popitem(last=False)
        self._former_bytes -= _cost(secret)
        del self._former_of[key][number]
        if not self._former_of[key]:
            del self._former_of[key]

    def _blocks_of(self, secret: Secret) -> Blocks:
        kept = self._blocks.pop(id(secret), None)
        if kept is None:
            kept = secret, blocks_of(secret)
            self._blocks_bytes += _cost(secret)
        self._blocks[id(secret)] = kept
        while self._blocks_bytes > MAX_KEPT_BYTES:
            _, (dropped, _) = self._blocks.popitem(last=False)
            self._blocks_bytes -= _cost(dropped)
        return kept[1]


def _cost(secret: Secret) -> int:
    return values_size(secret) + FORMER_COST_BYTES
