"""All attacks, by subject."""

from __future__ import annotations

from typing import Final

from tests.attack import (
    bodies,
    changed_sources,
    clients,
    containers,
    files,
    hostile_cluster,
    hung,
    images,
    manifests,
    many_mounts,
    network,
    oversize,
    probes,
    process_limit,
    sizes,
    spdy,
    state_files,
    storage,
    strangers,
    taken_names,
)
from tests.attack.attack import Attack

ATTACKS: Final[tuple[Attack, ...]] = (
    *files.ATTACKS,
    *changed_sources.ATTACKS,
    *manifests.ATTACKS,
    *probes.ATTACKS,
    *containers.ATTACKS,
    *storage.ATTACKS,
    *images.ATTACKS,
    *clients.ATTACKS,
    *bodies.ATTACKS,
    *network.ATTACKS,
    *spdy.ATTACKS,
    *strangers.ATTACKS,
    *taken_names.ATTACKS,
    *oversize.ATTACKS,
    *hung.ATTACKS,
    *hostile_cluster.ATTACKS,
    *state_files.ATTACKS,
    *many_mounts.ATTACKS,
    *sizes.ATTACKS,
    *process_limit.ATTACKS,
)
QUICK: Final = tuple(attack for attack in ATTACKS if attack.is_quick)
BY_NAME: Final = {attack.name: attack for attack in ATTACKS}
