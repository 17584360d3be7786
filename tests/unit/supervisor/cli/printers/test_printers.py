"""Looks of objects. Layout and wording were compared with what kubectl 1.32 prints for the same objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.clock import rfc3339
from ipc.host.text.human import human_duration
from ipc.host.text.safe_text import safe_text
from ipc.k8s.resources.times import local_time, since
from supervisor.cli.printers.documents import as_json, as_list
from supervisor.cli.printers.events import event_row
from supervisor.cli.printers.tables import TablePrinter, align_tabs, printable
from supervisor.cli.printers.yaml_document import as_yaml

NOW = 1_700_000_000.0
ODD = "aü\x1b\x07\x7f\x9b\r\n\t \u202e\u2066\u200f\u200b\ufeff\u3000\U000e0001\U0001f600\\'\":#-"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR + 300 * DAY, "8y"),
    ],
)
def test_durations(duration_s: float, text: str) -> None:
    assert human_duration(duration_s) == text


def test_times() -> None:
    assert since(rfc3339(NOW - 5), NOW) == "5s"
    assert since(None, NOW) == since("soon", NOW) == "<unknown>"
    assert local_time("nonsense") == "<unknown>"


# --- tables --------------------------------------------------------------------------------------------------------


def test_rows_that_come_later_line_up() -> None:
    table = TablePrinter(("NAME", "AGE"))
    assert table.format([("a", "1s")]) == "NAME   AGE\na      1s\n"
    assert table.format([("a-long-name", "1s")]) == "a-long-name   1s\n"
    assert table.format([("a", "2s")]) == "a             2s\n"


def test_terminals_are_not_steered() -> None:
    assert printable("a\x1b[31mb\r\nc\x9bd\x00\u202e") == r"a\x1b[31mb\r c\u009bd\x00\u202e"
    assert TablePrinter(("A", "B"), show_header=False).format([("\x1b]0;x\x07", "y")]) == "\\x1b]0;x\\x07   y\n"


@given(st.dictionaries(st.text(ODD, max_size=6), st.text(ODD, max_size=9), max_size=3))
def test_documents_steer_no_terminal_and_read_back_as_they_were(found: dict[str, Any]) -> None:
    for document, read in ((as_json(found), json.loads), (as_yaml(found), yaml.safe_load)):
        assert safe_text(document) == document
        assert read(document) == found


def test_tabs_are_elastic() -> None:
    text = "Name:\tx\nA longer title:\ty\nplain\nB:\tz\n  a\tbb\tccc\n  aaaa\tb\tc"
    assert align_tabs(text) == (
        "Name:            x\nA longer title:  y\nplain\nB:      z\n  a     bb  ccc\n  aaaa  b   c"
    )


@given(st.text(alphabet="ab\t\n", max_size=60))
def test_aligning_changes_only_tabs(text: str) -> None:
    aligned = align_tabs(text)
    assert "\t" not in aligned
    assert aligned.replace(" ", "") == text.replace("\t", "")
    assert aligned.count("\n") == text.count("\n")


def test_events() -> None:
    event = {
        "metadata": {"name": "e"},
        "type": "Warning",
        "reason": "BackOff",
        "message": " line\n",
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{app}"},
        "source": {"component": "rootlet", "host": "n"},
        "firstTimestamp": rfc3339(NOW - 300),
        "lastTimestamp": rfc3339(NOW - 10),
        "count": 3,
    }
    assert event_row(event, NOW) == ("10s (x3 over 5m)", "Warning", "BackOff", "Pod/web", "line")
    assert event_row(event | {"count": 1}, NOW)[0] == "5m"
    series = {"count": 7, "lastObservedTime": rfc3339(NOW - 1)}
    assert event_row(event | {"series": series}, NOW)[0] == "1s (x7 over 5m)"


# --- documents -----------------------------------------------------------------------------------------------------


def test_yaml_is_gos() -> None:
    obj = {"b": ["x\ny", "1", "", "plain", "y"], "a": {"t": "2026-01-01T00:00:00Z", "num": 1, "on": True, "ü": "ö"}}
    assert as_yaml(obj) == (
        'a:\n  num: 1\n  "on": true\n  t: "2026-01-01T00:00:00Z"\n  ü: ö\n'
        'b:\n- |-\n  x\n  y\n- "1"\n- ""\n- plain\n- "y"\n'
    )


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=4))
def test_yaml_says_what_it_is_given(obj: dict[str, str]) -> None:
    assert yaml.safe_load(as_yaml(obj)) == obj


def test_json_is_gos() -> None:
    text = as_json(as_list([{"kind": "Pod", "a": "<ü>"}]))
    assert text == (
        '{\n    "apiVersion": "v1",\n    "items": [\n        {\n            "a": "<ü>",\n            "kind": "Pod"\n'
        '        }\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'
    )
