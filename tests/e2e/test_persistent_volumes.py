"""PersistentVolumes and claims in documents: bound, mounted, kept over kill -9, released, reclaimed. Real Podman."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.volumes import HERE, claim, mount, mounting, volume, wish
from tests.support.podman_service import podman, remove_by_force

pytestmark = [pytest.mark.e2e, pytest.mark.podman]


def using(name: str, of: str) -> Json:
    return mounting(name, [claim("data", of)], mount("data", "/data"))


def rows(agent: Agent, kind: str) -> dict[str, list[str]]:
    """Rows of a table, by name."""
    return {
        cells[0]: cells for line in agent.cli("get", kind, "--no-headers").out.splitlines() if (cells := line.split())
    }


def phase(agent: Agent, kind: str, name: str) -> str:
    """Empty while there is no such object."""
    found = agent.cli("get", kind, name, "-o", "json").out
    return str(json.loads(found)["status"]["phase"]) if found else ""


def until_phase(agent: Agent, kind: str, name: str, wanted: str) -> None:
    agent.until(lambda: phase(agent, kind, name) == wanted, f"{kind} {name} is {wanted}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory below /tmp."""
    path = Path(tempfile.mkdtemp(prefix="rootlet-pv-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_a_claim_is_bound_and_mounted_and_the_binding_outlives_kill_9(agent: Agent, place: Path) -> None:
    small, large = place / "small", place / "large"
    for path in (small, large):
        path.mkdir()
    agent.write(
        volume("pv-large", "9Gi", hostPath={"path": str(large)}, storageClassName="disk"),
        volume("pv-small", "2Gi", local={"path": str(small)}, nodeAffinity=HERE, storageClassName="disk"),
        wish("pvc-disk", "1Gi", storageClassName="disk"),
    )
    agent.run(using("pv-user", "pvc-disk"))
    agent.inside("pv-user", "echo kept > /data/file")
    assert (small / "file").read_text() == "kept\n"
    assert rows(agent, "pv")["pv-small"][1:7] == ["2Gi", "RWO", "Retain", "Bound", "default/pvc-disk", "disk"]
    assert rows(agent, "pvc")["pvc-disk"][1:6] == ["Bound", "pv-small", "2Gi", "RWO", "disk"]
    assert "Requests:" in agent.cli("describe", "pvc", "pvc-disk").out
    agent.kill_and_recover("master")
    # One that would be chosen now if it were not bound.
    agent.write(volume("pv-smaller", "1Gi", hostPath={"path": str(place)}, storageClassName="disk"))
    until_phase(agent, "pv", "pv-smaller", "Available")
    assert rows(agent, "pvc")["pvc-disk"][1:3] == ["Bound", "pv-small"]
    agent.until_ready(["pv-user"])
    agent.remove("pvc-disk")
    agent.until(lambda: rows(agent, "pvc")["pvc-disk"][1] == "Terminating", "the claim waits for its pod")
    assert phase(agent, "pv", "pv-small") == "Bound"
    agent.remove("pv-user")
    until_phase(agent, "pv", "pv-small", "Released")
    assert "pvc-disk" not in rows(agent, "pvc")
    assert (small / "file").read_text() == "kept\n"
    agent.remove("pv-large", "pv-small", "pv-smaller")


def test_a_pod_waits_for_its_claim_and_starts_when_that_is_bound(agent: Agent, place: Path) -> None:
    agent.write(wish("pvc-wait", storageClassName="other"), using("pv-waits", "pvc-wait"))
    why = 'MountVolume.SetUp failed for volume "data" : error processing PVC default/pvc-wait: PVC is not bound'
    agent.until(lambda: any(why in text for text in agent.messages("pv-waits", "FailedMount")), "the pod says why")
    assert phase(agent, "pvc", "pvc-wait") == "Pending"
    described = agent.cli("describe", "pvc", "pvc-wait").out
    assert "ProvisioningFailed" in described
    assert 'storageclass.storage.k8s.io "other" not found' in described
    agent.write(volume("pv-late", hostPath={"path": str(place / "made")}, storageClassName="other"))
    agent.until_ready(["pv-waits"])
    agent.remove("pv-waits", "pvc-wait", "pv-late")


def test_a_claim_without_a_class_is_given_a_volume_in_podman_of_its_name(agent: Agent) -> None:
    name = f"{agent.instance}-plain"
    try:
        agent.write(wish(name, "3Gi"))
        agent.run(using("pv-podman", name))
        agent.inside("pv-podman", "echo kept > /data/file")
        assert name in podman("volume", "ls", "--format", "{{.Name}}").split()
        found = rows(agent, "pvc")[name]
        assert (found[1], found[3]) == ("Bound", "3Gi")
        agent.remove("pv-podman", name)
        agent.until(lambda: name not in rows(agent, "pvc"), "the claim is gone")
        assert name in podman("volume", "ls", "--format", "{{.Name}}").split()
    finally:
        remove_by_force("volume", name)


def test_a_claim_s_annotations_for_podman_make_its_volume(agent: Agent, place: Path) -> None:
    """Without them its data would land in an empty volume."""
    bound, owned = f"{agent.instance}-bound", f"{agent.instance}-owned"
    (place / "there").write_text("of the host")
    annotations = {
        bound: {"device": str(place), "type": "none", "mount-options": "bind"},
        owned: {"uid": "7", "gid": "8"},
    }
    try:
        for name, of in annotations.items():
            wanted = wish(name)
            wanted["metadata"]["annotations"] = {f"volume.podman.io/{key}": value for key, value in of.items()}
            agent.write(wanted)
        agent.run(using("pv-bound", bound), using("pv-owned", owned))
        assert agent.inside("pv-bound", "cat /data/there") == "of the host"
        assert agent.inside("pv-owned", "stat -c %u:%g /data") == "7:8"
        agent.remove("pv-bound", "pv-owned", bound, owned)
        agent.until_gone(["pv-bound", "pv-owned"])
    finally:
        remove_by_force("volume", bound, owned)


def test_the_policy_delete_takes_a_directory_below_tmp_and_the_volume_is_free_again(agent: Agent, place: Path) -> None:
    """Files of other users of the container go too."""
    path = place / "data"
    delete: dict[str, Any] = {"persistentVolumeReclaimPolicy": "Delete", "storageClassName": "tmp"}
    agent.write(
        volume("pv-tmp", hostPath={"path": str(path), "type": "DirectoryOrCreate"}, **delete),
        volume("pv-tmp-local", "2Gi", local={"path": str(place)}, nodeAffinity=HERE, **delete),
        wish("pvc-tmp", storageClassName="tmp"),
        wish("pvc-tmp-local", "2Gi", storageClassName="tmp"),
    )
    agent.run(using("pv-tmp-user", "pvc-tmp"))
    agent.inside("pv-tmp-user", "mkdir /data/below && echo x > /data/below/file && chown -R 7:7 /data/below")
    agent.remove("pv-tmp-user", "pvc-tmp", "pvc-tmp-local")
    until_phase(agent, "pv", "pv-tmp-local", "Failed")
    assert "no deletable volume plugin matched" in agent.cli("describe", "pv", "pv-tmp-local").out
    agent.until(lambda: not path.exists(), "the directory is gone")
    until_phase(agent, "pv", "pv-tmp", "Available")
    assert place.exists()
    agent.remove("pv-tmp", "pv-tmp-local")


def test_only_one_pod_has_a_claim_of_read_write_once_pod(agent: Agent, place: Path) -> None:
    one = ("ReadWriteOncePod",)
    agent.write(
        volume("pv-one", modes=one, hostPath={"path": str(place)}, storageClassName="one"),
        wish("pvc-one", modes=one, storageClassName="one"),
    )
    agent.run(using("pv-first", "pvc-one"))
    agent.write(using("pv-second", "pvc-one"))
    why = "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
    agent.until(lambda: any(why in text for text in agent.messages("pv-second", "FailedMount")), "the second one waits")
    agent.restart()
    agent.until_ready(["pv-first"])
    agent.remove("pv-first")
    agent.until_ready(["pv-second"])
    agent.remove("pv-second", "pvc-one", "pv-one")


def test_a_volume_of_another_kind_is_refused_with_words(agent: Agent) -> None:
    nfs = json.dumps(volume("pv-nfs", nfs={"server": "example.com", "path": "/"}))
    refused = agent.cli("apply", "-f", "-", stdin=nfs)
    assert refused.code == 1
    assert "spec.nfs: Forbidden: not supported here: only hostPath and local: mount it on the host" in refused.err
