"""The warning beside what may be out of date."""

from __future__ import annotations

import pytest

from supervisor.cli.printers.staleness import stale_warning


@pytest.mark.parametrize("about", [{}, {"runtimeSilentSince": 0.0, "runtimeMessage": ""}])
def test_nothing_is_said_while_podman_answers(about: dict[str, object]) -> None:
    assert stale_warning(about, 100.0) == ""


def test_since_when_and_why() -> None:
    about = {"runtimeSilentSince": 1000.0, "runtimeMessage": "no answer within 3 s"}
    assert stale_warning(about, 1090.0) == (
        "warning: Podman has not answered for 90s, pods are shown as they were before: no answer within 3 s"
    )
