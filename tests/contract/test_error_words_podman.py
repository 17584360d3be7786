"""Podman's words for errors that are about images: the reasons of statuses rest on them."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ipc.link.messages.sync_error import SyncError
from tests.contract.target import PodmanTarget, container_spec, pod_spec, unique
from tests.support import registry
from tests.support.podman_service import PodmanService, podman, running_service
from workers.images.error_reasons import pull_fault, start_fault
from workers.kubecontainer.runtime import RuntimeCallError
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.podman

POLICIES = {
    "a place that is rejected": {"type": "reject"},
    "a signature that is missing": {"type": "signedBy", "keyType": "GPGKeys", "keyPath": "/dev/null"},
}


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


async def refused_pull(runtime: PodmanRuntime, reference: str) -> str:
    with pytest.raises(RuntimeCallError) as refused:
        await runtime.pull_image(reference, lambda words: None)
    return refused.value.message


@pytest.mark.parametrize("away", ["127.0.0.1:1/nobody/listens:1", "no-such-host.invalid/nobody/answers:1"])
async def test_a_registry_that_is_away(podman_service: PodmanService, away: str) -> None:
    runtime = PodmanRuntime(podman_service.socket, podman_service.new_instance())
    try:
        assert pull_fault(away, await refused_pull(runtime, away)).reason is SyncError.REGISTRY_UNAVAILABLE
    finally:
        await runtime.close()


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
async def test_an_image_that_the_users_policy_does_not_accept(
    podman_service: PodmanService, tmp_path: Path, policy: dict[str, str]
) -> None:
    if reason := registry.why_not():
        pytest.skip(reason)
    home, own = tmp_path / "home", Path.home() / ".config" / "containers"
    accepts = {"type": "insecureAcceptAnything"}
    with registry.registry(tmp_path) as shop, pytest.MonkeyPatch.context() as patch:
        if own.is_dir():
            shutil.copytree(own, home / ".config" / "containers")
        (home / ".config" / "containers").mkdir(parents=True, exist_ok=True)
        rules = {"default": [accepts], "transports": {"docker": {shop.address: [policy]}}}
        (home / ".config" / "containers" / "policy.json").write_text(json.dumps(rules))
        patch.setenv("XDG_DATA_HOME", os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share"))
        patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        patch.setenv("HOME", str(home))
        for name, value in registry.registries_conf(tmp_path, shop.address).items():
            patch.setenv(name, value)
        shop.push("policy", "1")
        (tmp_path / "service").mkdir()
        with running_service(tmp_path / "service") as socket:
            runtime, image = PodmanRuntime(str(socket), podman_service.new_instance()), f"{shop.address}/policy:1"
            try:
                message = await refused_pull(runtime, image)
            finally:
                await runtime.close()
    assert pull_fault(image, message).reason is SyncError.SIGNATURE_VALIDATION_FAILED, message


async def test_an_image_that_is_removed_before_it_is_mounted(target: PodmanTarget, tmp_path: Path) -> None:
    name, runtime = f"localhost/{unique('volume', target)}:1", target.runtime
    (tmp_path / "file").write_text("of the image")
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(tmp_path / "file", "file")
    podman("import", "--quiet", str(tmp_path / "root.tar"), name)
    try:
        pod_id = await runtime.create_pod(pod_spec(target))
        volume = {"Source": name, "Destination": "/v", "ReadWrite": False}
        id = await runtime.create_container({**container_spec(target, pod_id), "image_volumes": [volume]})
    finally:
        podman("rmi", "--force", "--ignore", name)
    with pytest.raises(RuntimeCallError) as refused:
        await runtime.start_container(id)
    assert start_fault(refused.value.message) is SyncError.IMAGE_VOLUME_MOUNT_FAILED, refused.value.message
