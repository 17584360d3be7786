"""A run in words and as a page: everything in it is text, and the page needs nothing else."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from supervisor.load_test.html_report import as_html
from supervisor.load_test.processes import Usage
from supervisor.load_test.report import Report, as_text, verdict


def report(**changes: Any) -> Report:
    fields: dict[str, Any] = {
        "run": "r1",
        "pods": 4,
        "containers": 1,
        "image": "<script>alert(1)</script>",
        "agent_version": "1",
        "podman_version": "4",
        "ready": 4,
        "all_ready_s": 2.0,
        "pods_per_second": 2.0,
        "time_to_ready_s": None,
        "observe_to_status_s": None,
        "delete_s": 1.0,
        "deleted_per_second": 4.0,
        "ready_at_s": (0.5, 1.0, 1.5, 2.0),
        "times_to_ready_s": (0.5, 0.5, 1.0, 2.0),
        "agent": (Usage(name="master", pid=1, pss_bytes=1, cpu_seconds=0.1),),
        "podman": (),
        "problems": (),
    }
    return Report(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "PASSED: 4 pods became Ready at 2.00 pods/s, and are gone again."),
        ({"floor_s": 1.0}, "Podman alone starts them at 4.00 pods/s: the agent has 0.50 of that."),
        ({"ready": 3, "all_ready_s": None}, "FAILED: 3 of 4 pods became Ready."),
        ({"delete_s": None}, "FAILED: 4 of 4 pods became Ready, and some are left."),
    ],
)
def test_verdict(changes: dict[str, Any], said: str) -> None:
    assert verdict(report(**changes)).endswith(said)
    assert as_text(report(**changes)).endswith(f"{verdict(report(**changes))}\n")


@pytest.mark.parametrize(
    "changes", [{}, {"ready_at_s": (), "times_to_ready_s": ()}, {"problems": ("<b>",), "ready": 0}]
)
def test_the_page_is_well_formed_and_holds_no_markup_of_others(changes: dict[str, Any]) -> None:
    page = as_html(report(**changes))
    body = page[page.index("<body>") : page.index("</html>")]
    root = ElementTree.fromstring(body)
    assert root.findall(".//script") == []
    assert "http" not in page
    bars = root.findall(".//rect")
    assert (len(root.findall(".//polyline")) == 1) == bool(bars) == ("ready_at_s" not in changes)
    assert len(root.findall(".//li")) == len(changes.get("problems", ()))
