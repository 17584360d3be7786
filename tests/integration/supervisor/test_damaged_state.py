"""The agent's whole knowledge, with each file of it damaged in many places: it is read or moved aside, and the loop
takes what it is given."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.persistent_volume import PersistentVolumeClaim
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from ipc.link.messages import event_reasons
from ipc.link.messages.base import node_event
from supervisor.loop_checkpoints import PROBES_FILE, LoopCheckpoints
from supervisor.sources.manager import SourceManager
from supervisor.state import container_restarts_checkpoint, probe_checkpoint, volume_bindings
from supervisor.state.shutdown_state import StoredShutdown, restore_shutdown, save_shutdown
from tests.support.dialogue import Talk
from tests.support.manifests import manifest, text

PLACES = 40
FILES = (
    "desired.json",
    "objects.json",
    "events.jsonl",
    "allocated_pods_state",
    "graceful_node_shutdown_state",
    "probes.json",
    "container_restarts",
    "volume_bindings",
)
CLAIM = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="n"))
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"key": "value"}}
INSERTED = (b"\xff", b"\0", b"9" * 400, b"-", b'"', b"[" * 3000)


def damaged(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """The content with one place of it damaged: overwritten, cut out, or with something put in."""
    for _ in range(PLACES):
        at = chance.randrange(len(data))
        yield data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :]
        yield data[:at] + data[at + chance.randrange(1, 20) :]
        yield data[:at] + chance.choice(INSERTED) + data[at:]


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    """A state directory in which every file has something."""
    directory = tmp_path / "state"
    talk = Talk(state_dir=directory)
    talk.start("a")
    talk.say(node_event("n1", event_reasons.PREFLIGHT, "no cgroups"))
    await LoopCheckpoints(talk.settings, talk.loop.durable, SystemClock()).close()
    probe_checkpoint.save(directory / PROBES_FILE, {"c1": ProbeResults(readiness=ProbeResult.SUCCESS)})
    container_restarts_checkpoint.save(directory / container_restarts_checkpoint.FILE, {"a": {"c1": 5, "c2": None}})
    volume_bindings.save(directory / volume_bindings.FILE, [volume_bindings.Binding(volume="v", claim=CLAIM)])
    sources = SourceManager(talk.settings, SystemClock())
    assert (await sources.apply("-", text(CONFIG_MAP))).code == 200
    assert (await sources.apply("-", text(manifest("applied")))).code == 200
    save_shutdown(directory, StoredShutdown(start_time=1.0, cause="host"))
    return directory


def test_a_drain_whose_name_was_damaged_is_not_passed_over(tmp_path: Path) -> None:
    save_shutdown(tmp_path, StoredShutdown(drained=True))
    file = tmp_path / "graceful_node_shutdown_state"
    file.write_bytes(file.read_bytes().replace(b"drained", b"dra\xffned"))
    assert restore_shutdown(tmp_path) == StoredShutdown()
    assert file.with_name(f"{file.name}.refused").exists()


async def test_no_damage_keeps_it_from_starting(state: Path, tmp_path: Path) -> None:
    chance = random.Random(28)
    files = [state / name for name in FILES]
    for path in files:
        whole = path.read_bytes()
        for number, content in enumerate(damaged(whole, chance)):
            copy = tmp_path / f"{path.name}-{number}"
            shutil.copytree(state, copy)
            (copy / path.name).write_bytes(content)
            talk = Talk(state_dir=copy)
            for event in LoopCheckpoints(talk.settings, talk.loop.durable, SystemClock()).restore():
                talk.say(event)
            for update in SourceManager(talk.settings, SystemClock()).restore():
                talk.say(update)
            restore_shutdown(copy)
            left = copy / path.name if path.name in os.listdir(copy) else copy / f"{path.name}.refused"
            assert left.read_bytes() == content
            shutil.rmtree(copy)
