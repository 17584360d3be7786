"""One seed: its manifests are read, and every pod that is accepted is brought up, edited and taken down."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.link.messages.pod_worker import SyncDone, WorkType
from ipc.link.messages.sync_error import SyncError
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import Admitted, admit
from supervisor.config.settings import Settings
from supervisor.sources.objects.decode import decode_manifest
from tests.fakes.clock import simulate
from tests.fuzz.manifests import PLANTED, Maker
from tests.support.manifests import ORIGIN
from tests.support.sync import FakeHost

ESCAPED = Path("/tmp/rootlet-escaped")
"""Where some of the paths lead."""
SETTINGS = Settings(node_name=ORIGIN.node_name)


def run_seed(seed: int) -> int:
    """How many pods were accepted. Raises AssertionError, or whatever the product let escape."""
    decoded = decode_manifest(Maker(seed).file(), "hostile.yaml", ORIGIN)
    for error in decoded.errors:
        text = str(error)
        assert text.isprintable(), f"an error of more than a line: {text!r}"
        assert PLANTED not in text, f"an error that tells a secret: {text}"
    accepted = [item.pod for item in decoded.pods if isinstance(admit(item.pod, NodeUsage(), SETTINGS), Admitted)]
    stated = [item.object for item in decoded.objects]
    objects = ConfigObjects(
        config_maps={each.metadata.name: each for each in stated if isinstance(each, ConfigMap)},
        secrets={each.metadata.name: each for each in stated if isinstance(each, Secret)},
    )
    for pod in accepted:
        _carry_out(pod, objects)
    return len(accepted)


def _carry_out(pod: Pod, objects: ConfigObjects) -> None:
    """In memory: a Secret is not mounted anywhere else."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        root = Path(directory) / "world"
        outside = Path(directory) / "outside"
        outside.mkdir()
        (outside / "file").write_text("untouched")
        before = _below(Path(directory))

        async def main() -> None:
            host = FakeHost(root / "logs")
            for _ in range(3):
                _check(await host.sync(pod, objects=objects))
            _check(await host.sync(pod, WorkType.TERMINATING, grace_period_s=0))
            _check(await host.sync(pod, WorkType.TERMINATED, remove=True))
            assert not host.podman.containers, "something of it stays in the runtime"
            for event in host.events:
                assert PLANTED not in event.message, f"an event that tells a secret: {event.message}"

        simulate(main)
        written = _below(Path(directory)) - before
        assert all(path.is_relative_to(root) for path in written), f"written outside: {written}"
        assert not ESCAPED.exists(), "written where a path led out"
        assert (outside / "file").read_text() == "untouched"
        left = [path for path in written if path.is_file() and PLANTED.encode() in path.read_bytes()]
        assert not left, f"a secret is left on disk: {left}"


def _check(done: SyncDone) -> None:
    assert done.error is not SyncError.INTERNAL, f"a traceback: {done.message}"


def _below(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))
