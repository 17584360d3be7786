"""Laws of binding, whatever comes and goes: one claim a volume, one volume a claim, and nobody is rebound."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from supervisor.persistentvolume.binding import settle
from supervisor.persistentvolume.values import Documents
from supervisor.state.volume_bindings import Binding, ClaimKey, VolumePhase, claim_key
from tests.unit.supervisor.persistentvolume.test_matching import claim, volume

SIZES = ("1Gi", "2Gi", "5Gi")
VOLUMES = tuple(volume(f"v{size}{number}", size) for size in SIZES for number in range(2))
CLAIMS = (
    *(claim(f"c{size}", size, storage_class_name="") for size in SIZES),
    *(claim(f"p{size}", size) for size in SIZES),
    claim("named", volume_name="v2Gi0"),
    claim("p1Gi", namespace="other"),
)
KEYS = tuple(map(claim_key, CLAIMS))
States = st.tuples(
    st.sets(st.sampled_from(range(len(VOLUMES)))),
    st.sets(st.sampled_from(range(len(CLAIMS)))),
    st.sets(st.sampled_from(KEYS)),
)


def documents(volumes: set[int], claims: set[int], used: set[ClaimKey]) -> Documents:
    of_volumes: list[PersistentVolume] = [VOLUMES[index] for index in sorted(volumes)]
    of_claims: list[PersistentVolumeClaim] = [CLAIMS[index] for index in sorted(claims)]
    return Documents(
        volumes={found.metadata.name: found for found in of_volumes},
        claims={claim_key(found): found for found in of_claims},
        used_claims=used,
    )


def bound(bindings: Mapping[str, Binding]) -> dict[ClaimKey, str]:
    """Volume by claim."""
    return {held.key: name for name, held in bindings.items() if held.phase is VolumePhase.BOUND}


@given(st.lists(States, max_size=8))
def test_whatever_comes_and_goes(states: list[tuple[set[int], set[int], set[ClaimKey]]]) -> None:
    bindings: Mapping[str, Binding] = {}
    for volumes, claims, used in states:
        stated = documents(volumes, claims, used)
        before = bindings
        bindings, unbound = settle(stated, before, lambda _: True, "2026-01-01T00:00:00Z")
        holders = [held.key for held in bindings.values() if held.phase is VolumePhase.BOUND]
        assert len(holders) == len(set(holders))
        assert set(holders).isdisjoint(unbound)
        assert set(stated.claims) <= {*holders, *unbound}
        assert set(holders) <= {*stated.claims, *used}
        kept = {key: name for key, name in bound(before).items() if key in stated.claims or key in used}
        assert kept.items() <= bound(bindings).items()
        released = {name for name, held in before.items() if held.phase is VolumePhase.RELEASED}
        assert released.isdisjoint(bound(bindings).values())
        assert settle(stated, bindings, lambda _: True, "2026-01-02T00:00:00Z") == (bindings, unbound)
