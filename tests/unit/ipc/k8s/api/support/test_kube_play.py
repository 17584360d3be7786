"""Acts of `podman kube play` on a field, beside those of Rootlet."""

from __future__ import annotations

import pytest

from ipc.k8s.api.support.table import ROWS
from tests.docs.reference.kube_play import ACTED_ON, kube_play


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("spec.restartPolicy", "yes"),
        ("spec.volumes[*].hostPath.type", "yes"),
        ("spec.containers[*].env[*].valueFrom", "partly"),
        ("spec.containers[*].lifecycle", "partly"),
        ("spec.containers[*].lifecycle.preStop.exec", "no"),
        ("spec.containers[*].readinessProbe", "no"),
        ("spec.containers", "yes"),
        ("spec.hostnameOverride", "no"),
    ],
)
def test_a_parent_speaks_for_what_is_below_it(path: str, what: str) -> None:
    assert kube_play(path) == what


def test_each_field_of_podmans_list_has_a_row_or_is_below_one() -> None:
    rows = {row.path for row in ROWS}

    def has_row(path: str) -> bool:
        return any(path == row or path.startswith((f"{row}.", f"{row}[")) or row.startswith(path) for row in rows)

    assert [path for path in sorted(ACTED_ON) if not has_row(path)] == []
