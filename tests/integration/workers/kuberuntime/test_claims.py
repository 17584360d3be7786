"""Claims that containers mount parts of: the program inside Podman's namespaces runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from ipc.k8s.api.v1.container import VolumeMount
from ipc.k8s.api.v1.volume import PersistentVolumeClaimVolumeSource, Volume
from tests.fakes.clock import simulate
from tests.support.pods import container, pod
from tests.support.sync import FakeHost


def on_host(tmp_path: Path, scenario: Callable[[FakeHost], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(FakeHost(tmp_path / "logs"))

    simulate(main)


def test_a_claims_volume_is_asked_for_once_for_all_that_mount_a_part_of_it(tmp_path: Path) -> None:
    claim = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data"))
    parts = [container(n, volume_mounts=(VolumeMount(name="v", mount_path="/v", sub_path=n),)) for n in ("a", "b")]

    async def scenario(host: FakeHost) -> None:
        # The first time each container asks whether it is the one that makes the volume.
        for asked in (1 + len(parts), 1):
            before = host.runtime.calls.count("inspect_volume")
            done = await host.sync(pod(*parts, volumes=(claim,)))
            assert [result.target for result in done.results if result.action == "StartContainer"] == ["a", "b"]
            assert host.runtime.calls.count("inspect_volume") - before == asked

    on_host(tmp_path, scenario)
