"""Warnings before an upgrade to Podman 6: a BoltDB, and a storage.conf of the administrator's."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.doctor.before_podman_6 import UpgradeFacts, upgrade_facts, upgrade_findings
from supervisor.doctor.findings import Level

FILES = UpgradeFacts(has_boltdb=True, system_storage=("graphroot", "mount_program"))


def test_a_fresh_storage_needs_nothing(tmp_path: Path) -> None:
    facts = upgrade_facts(tmp_path, {"HOME": str(tmp_path)}, tmp_path / "etc")
    assert facts == UpgradeFacts()
    assert list(upgrade_findings((5, 8, 6), facts)) == []


def test_a_bolt_database_is_found(tmp_path: Path) -> None:
    (tmp_path / "libpod").mkdir()
    (tmp_path / "libpod/bolt_state.db").touch()
    assert upgrade_facts(tmp_path, {"HOME": str(tmp_path)}, tmp_path).has_boltdb


@pytest.mark.parametrize(
    ("conf", "found"),
    [
        ('[storage]\ngraphroot = "/srv/storage"\n', ("graphroot",)),
        ('[storage]\n[storage.options.overlay]\nmount_program = "/usr/bin/fuse-overlayfs"\n', ("mount_program",)),
        ('[storage]\n[storage.options]\nmount_program = "/usr/bin/fuse-overlayfs"\n', ("mount_program",)),
        ('[storage]\ndriver = "overlay"\n', ()),
        ('storage = "none"\n', ()),
        ("[storage\n", ()),
        ("[storage]\noptions = 1\n", ()),
    ],
)
def test_the_administrators_storage_counts_for_who_has_none(tmp_path: Path, conf: str, found: tuple[str, ...]) -> None:
    (tmp_path / "storage.conf").write_text(conf)
    environ = {"HOME": str(tmp_path)}
    assert upgrade_facts(tmp_path, environ, tmp_path).system_storage == found
    (tmp_path / ".config/containers").mkdir(parents=True)
    (tmp_path / ".config/containers/storage.conf").touch()
    assert upgrade_facts(tmp_path, environ, tmp_path).system_storage == ()


@pytest.mark.parametrize(
    ("version", "warnings"), [((4, 3, 1), 1), ((5, 4, 2), 2), ((5, 8, 6), 2), ((6,), 0), ((6, 1, 1), 0)]
)
def test_it_is_told_before_the_upgrade(version: tuple[int, ...], warnings: int) -> None:
    """A BoltDB is told from Podman 5 on: who has an older one gets a newer one before 6.0."""
    findings = list(upgrade_findings(version, FILES))
    assert [(finding.subject, finding.level) for finding in findings] == [("upgrade", Level.WARNING)] * warnings
