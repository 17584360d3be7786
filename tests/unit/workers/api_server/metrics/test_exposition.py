"""Both formats, as prometheus-client's parsers read them."""

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from ipc.link.metrics import kubelet
from ipc.link.metrics.model import Metric, MetricType, Source
from workers.api_server.metrics.exposition import Family, Format, histogram, label_text, negotiated, number, render
from workers.statsapi import metrics as statistics

GAUGE = Metric(name="level", type=MetricType.GAUGE, help="Height", source=Source.SCRAPE, label_names=("place",))


def parsed(families: Iterable[Family], form: Format) -> list[Sample]:
    text = render(families, form).decode()
    parse = parse_openmetrics if form is Format.OPENMETRICS else parse_text
    return [sample for family in parse(text) for sample in family.samples]


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/plain;version=0.0.4", Format.TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5", Format.OPENMETRICS),
        ("text/html, Application/OpenMetrics-Text", Format.OPENMETRICS),
    ],
)
def test_openmetrics_is_for_whoever_names_it(accept: str, form: Format) -> None:
    assert negotiated(accept) is form


def test_a_histogram_in_text() -> None:
    samples = histogram('kind="x"', (0.5, 1.0), (1.0, 2.0, 4.0), 9.5, Format.TEXT)
    family = Family(kubelet.PLEG_RELIST_DURATION, samples)
    assert render([family], Format.TEXT).decode() == (
        "# HELP kubelet_pleg_relist_duration_seconds [ALPHA] Time that a relist took\n"
        "# TYPE kubelet_pleg_relist_duration_seconds histogram\n"
        'kubelet_pleg_relist_duration_seconds_bucket{kind="x",le="0.5"} 1\n'
        'kubelet_pleg_relist_duration_seconds_bucket{kind="x",le="1"} 3\n'
        'kubelet_pleg_relist_duration_seconds_bucket{kind="x",le="+Inf"} 7\n'
        'kubelet_pleg_relist_duration_seconds_sum{kind="x"} 9.5\n'
        'kubelet_pleg_relist_duration_seconds_count{kind="x"} 7\n'
    )


@pytest.mark.parametrize("form", Format)
def test_a_family_without_samples_is_not_shown(form: Format) -> None:
    assert parsed([Family(GAUGE, [])], form) == []


def test_a_counter_without_the_ending_has_it_in_openmetrics_alone() -> None:
    family = Family(kubelet.EVICTIONS, [("", 'eviction_signal="emptydirfs.limit"', 1.0, 0.0)])
    text = render([family], Format.TEXT).decode()
    assert "# TYPE kubelet_evictions counter\nkubelet_evictions{" in text
    [sample] = parsed([family], Format.OPENMETRICS)
    assert sample.name == "kubelet_evictions_total"


@pytest.mark.parametrize("form", Format)
def test_the_time_of_a_measurement(form: Format) -> None:
    [sample] = parsed([Family(GAUGE, [("", label_text(["place"], ["sea"]), 1.0, 1700000000.25)])], form)
    assert sample.timestamp is not None
    assert float(sample.timestamp) == pytest.approx(1700000000.25)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e15, 1.5, -2.0, 123456789.125, math.inf, -math.inf, 1e300, 5e-324])
@pytest.mark.parametrize("form", Format)
def test_a_value_is_read_as_it_was_written(value: float, form: Format) -> None:
    [sample] = parsed([Family(GAUGE, [("", "", value, 0.0)])], form)
    assert sample.value == value


def test_what_is_no_number() -> None:
    assert number(math.nan) == "NaN"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_whatever_a_label_says_is_one_sample(words: str) -> None:
    family = Family(GAUGE, [("", label_text(["place"], [words]), 1.0, 0.0)])
    lines = render([family], Format.TEXT).decode().split("\n")
    assert len([line for line in lines if line]) == 3
    [sample] = parsed([family], Format.OPENMETRICS)
    assert sample.labels == {"place": words}


def test_what_is_no_unicode_is_replaced() -> None:
    assert b"?" in render([Family(GAUGE, [("", label_text(["place"], ["\udcff"]), 1.0, 0.0)])], Format.TEXT)


def test_every_declared_metric_of_statistics_is_a_family_of_its_own() -> None:
    families = [
        Family(metric, [("", "", 1.0, 0.0)]) for metric in statistics.METRICS if metric.endpoint == "/metrics/cadvisor"
    ]
    assert len(parsed(families, Format.OPENMETRICS)) == len(families)
