"""Attempts of which nothing but logs is left."""

from __future__ import annotations

from pathlib import Path

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.messages.node_worker import Relisted, Track
from tests.fakes.clock import simulated
from tests.support.node_worker import Host
from workers.kubecontainer import labels
from workers.logs import layout
from workers.pleg.logged_restarts import LostAttempts


def logged(root: Path, uid: str, container: str, attempt: int) -> Path:
    file = layout.log_file(layout.pod_directory(str(root), "default", f"name-{uid}", uid), container, attempt)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def seen(uid: str, **attempts: int) -> RuntimePodStatus:
    containers = tuple(
        RuntimeContainerStatus(id=name, name=name, attempt=attempt, state=ContainerState.EXITED)
        for name, attempt in attempts.items()
    )
    return RuntimePodStatus(uid=uid, containers=containers)


def test_lost_is_what_its_log_tells_and_nothing_else(tmp_path: Path) -> None:
    for attempt in (0, 1, 2):
        logged(tmp_path, "u1", "main", attempt)
    logged(tmp_path, "u1", "side", 0)
    (tmp_path / "no-pod" / "main").mkdir(parents=True)
    (tmp_path / "default_web_u2").touch()
    lost = LostAttempts(str(tmp_path))
    assert lost.of(seen("u1", main=2, side=0)) == {}
    assert lost.of(seen("u1", main=3, side=0)) == {}
    assert lost.of(seen("u1", main=1)) == {"main": 2, "side": 0}
    assert lost.of(seen("u1")) == {"main": 2, "side": 0}
    assert lost.of(seen("u3")) == {}
    assert list(lost.uids) == ["u1"]
    assert LostAttempts(str(tmp_path / "nothing")).of(seen("u1")) == {}


def test_a_pod_that_begins_anew_under_its_uid_has_lost_nothing(tmp_path: Path) -> None:
    files = [logged(tmp_path, "u1", "main", attempt) for attempt in (3, 4)]
    lost = LostAttempts(str(tmp_path))
    for file in files:
        file.unlink()
    assert lost.of(seen("u1")) == {}
    logged(tmp_path, "u1", "main", 0)
    assert lost.of(seen("u1", main=0)) == {}


def test_what_was_removed_before_is_told_by_its_logs(tmp_path: Path) -> None:
    """Somebody has removed the newest container of one pod and all of another, whose manifest comes late."""

    @simulated
    async def run() -> None:
        host = Host()
        host.container(host.pod("older"), "older", **{labels.ATTEMPT: "1"})
        logged(tmp_path, "older", "main", 2)
        gone = logged(tmp_path, "gone", "main", 5)
        async with host.worker(pod_logs_dir=tmp_path) as master:
            relisted = await master.first(Relisted)
            told = {o.uid: o.status.lost_attempts for o in relisted.changed if o.status is not None}
            assert told == {"older": {"main": 2}, "gone": {"main": 5}}
            before = len(master.reports)
            master.send(Track(uid="gone", row=1))
            seen = await master.observation("gone", after=before)
            status = master.status(seen)
            assert (status.is_empty(), status.lost_attempts) == (True, {"main": 5})
            before = len(master.reports)
            gone.unlink()
            await master.observation("gone", lambda status: not status.lost_attempts, after=before)

    run()
