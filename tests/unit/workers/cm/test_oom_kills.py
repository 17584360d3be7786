"""Kills for want of memory are found in the counts of cgroups, which are directories with files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.slices import FakeSlices
from workers.cm.oom_kills import OomKills
from workers.kubecontainer.runtime import ContainerProcess
from workers.proc import cgroups

POD, UID = "user-libpod_pod_x.slice", "uid"


class Tree:
    """Cgroups of one pod, as the kernel counts in them: a kill in a container is one in its pod, too."""

    def __init__(self, root: Path, pod: str = POD) -> None:
        self.pod = root / pod
        self.slices = Slices()
        self.own: dict[str, Path] = {}
        self.kills = 0

    def starts(self, id: str) -> ContainerProcess:
        self.own[id] = self.pod / f"libpod-{id}.scope"
        self.own[id].mkdir(parents=True)
        self._count(self.own[id], 0)
        self._count(self.pod, self.kills)
        return ContainerProcess(container_id=id, pid=1)

    def kills_in(self, id: str, number: int = 1) -> None:
        self.kills += number
        self._count(self.own[id], (self.oom_kills(str(self.own[id])) or 0) + number)
        self._count(self.pod, self.kills)

    def ends(self, id: str) -> None:
        """systemd removes what is empty."""
        Path(self.own[id], "memory.events").unlink()
        self.own[id].rmdir()

    def _count(self, directory: Path, number: int) -> None:
        Path(directory, "memory.events").write_text(f"low 0\nhigh 0\nmax 7\noom 1\noom_kill {number}\n")

    def cgroup_of(self, process: ContainerProcess) -> str:
        return str(self.own.get(process.container_id, ""))

    def oom_kills(self, directory: str) -> int | None:
        return cgroups.oom_kills(directory)


class Slices(FakeSlices):
    """Where our own slices are: nowhere, unless a test says so."""

    def __init__(self) -> None:
        self.directory = ""

    def directory_of(self, uid: str) -> str:
        return self.directory if uid == UID else ""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def ledger(tree: Tree) -> OomKills:
    made = OomKills(tree)
    made.adopted()
    return made


def start(tree: Tree, ledger: OomKills, *ids: str) -> None:
    for id in ids:
        ledger.runs(UID, tree.starts(id), is_infra=False)


def test_a_kill_that_nobody_who_runs_has_had_is_the_ended_ones(tree: Tree, ledger: OomKills) -> None:
    start(tree, ledger, "hog", "innocent")
    tree.kills_in("hog", 2)
    tree.ends("hog")
    assert ledger.has_killed(UID, "hog")
    tree.ends("innocent")
    assert not ledger.has_killed(UID, "innocent")
    assert ledger.has_killed(UID, "hog"), "the first answer stays"


def test_a_kill_in_one_that_runs_on_is_its_own(tree: Tree, ledger: OomKills) -> None:
    start(tree, ledger, "parent", "other")
    tree.kills_in("parent")
    tree.ends("other")
    assert not ledger.has_killed(UID, "other")
    tree.ends("parent")
    assert ledger.has_killed(UID, "parent")


def test_each_attempt_has_its_own_kills(tree: Tree, ledger: OomKills) -> None:
    for attempt, is_killed in (("a", True), ("b", False), ("c", True)):
        start(tree, ledger, attempt)
        if is_killed:
            tree.kills_in(attempt)
        tree.ends(attempt)
        assert ledger.has_killed(UID, attempt) is is_killed
        ledger.forget(UID, attempt)


def test_two_that_end_at_once_may_both_be_meant(tree: Tree, ledger: OomKills) -> None:
    """Neither is let go for the other's sake: only one that was ended by a SIGKILL is asked for at all."""
    start(tree, ledger, "first", "second")
    tree.kills_in("second")
    tree.ends("first")
    tree.ends("second")
    assert ledger.has_killed(UID, "first")
    assert ledger.has_killed(UID, "second")


def test_what_was_killed_before_this_process_began_is_nobodys(tree: Tree) -> None:
    ledger = OomKills(tree)
    process = tree.starts("a")
    tree.kills = 5
    tree.kills_in("a", 1)
    ledger.runs(UID, process, is_infra=False)
    ledger.adopted()
    start(tree, ledger, "b")
    tree.ends("b")
    assert not ledger.has_killed(UID, "b")
    tree.kills_in("a")
    tree.ends("a")
    assert ledger.has_killed(UID, "a")


def test_one_that_was_never_seen_to_run_is_found_by_the_pods_slice(tree: Tree, ledger: OomKills) -> None:
    tree.slices.directory = str(tree.pod)
    tree.starts("quick")
    tree.kills_in("quick")
    tree.ends("quick")
    assert ledger.has_killed(UID, "quick")


def test_an_infra_container_shows_where_the_pod_is(tree: Tree, ledger: OomKills) -> None:
    ledger.runs(UID, tree.starts("infra"), is_infra=True)
    tree.starts("quick")
    tree.kills_in("quick")
    tree.ends("quick")
    assert ledger.has_killed(UID, "quick")


def test_a_cgroup_that_may_be_anybodys_says_nothing(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "user.slice")
    ledger = OomKills(tree)
    ledger.adopted()
    start(tree, ledger, "a")
    tree.kills_in("a")
    tree.ends("a")
    assert not ledger.has_killed(UID, "a")


def test_a_pod_without_a_cgroup_is_forgotten_and_one_with_one_counts_on(tree: Tree, ledger: OomKills) -> None:
    start(tree, ledger, "a")
    tree.kills_in("a")
    tree.ends("a")
    assert ledger.has_killed(UID, "a")
    ledger.forget(UID, "a")
    ledger.drop_gone()
    start(tree, ledger, "b")
    tree.ends("b")
    assert not ledger.has_killed(UID, "b"), "the pod's count has been one since a"
    Path(tree.pod, "memory.events").unlink()
    ledger.forget(UID, "b")
    ledger.drop_gone()
    assert not ledger.has_killed(UID, "b")
