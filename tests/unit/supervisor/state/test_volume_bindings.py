"""Bindings on disk: as they were saved, or none at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.state.volume_bindings import FILE, Binding, VolumePhase, load, save
from tests.unit.supervisor.persistentvolume.test_matching import claim

BINDINGS = (
    Binding(volume="a", claim=claim()),
    Binding(volume="b", claim=claim("d"), phase=VolumePhase.FAILED, message="why"),
    Binding(volume="pvc-1", claim=claim("e"), provisioned=True, deleted_at="2026-01-01T00:00:00Z"),
)


def test_as_they_were_saved(tmp_path: Path) -> None:
    save(tmp_path / FILE, BINDINGS)
    assert load(tmp_path / FILE) == BINDINGS
    assert load(tmp_path / "none") == ()


@pytest.mark.parametrize(("before", "after"), [(b'"a"', b'"z"'), (b"1Gi", b"xGi"), (b"{", b"[")])
def test_a_damaged_file_costs_what_it_says_and_is_kept_aside(tmp_path: Path, before: bytes, after: bytes) -> None:
    save(tmp_path / FILE, BINDINGS)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes().replace(before, after, 1))
    assert load(tmp_path / FILE) == ()
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    "binding", [Binding(volume="a", claim=claim(size="much")), Binding(volume="a", claim=claim(), deleted_at="soon")]
)
def test_values_that_nobody_could_read_are_not_believed(tmp_path: Path, binding: Binding) -> None:
    save(tmp_path / FILE, [binding])
    assert load(tmp_path / FILE) == ()
