"""Thresholds of eviction as the configuration states them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.k8s.api.quantity import parse_amount
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.thresholds import (
    EvictionSettings,
    Threshold,
    ThresholdError,
    ThresholdValue,
    parse_percentage,
    parse_thresholds,
)
from supervisor.config.resolution.config_file import parse_settings
from supervisor.config.resolution.resolved_settings import Host, resolve_settings
from supervisor.config.settings import Settings, SettingsError

HEAD = "apiVersion: rootlet.dev/v1alpha1\nkind: RootletConfiguration\n"


def settings(text: str = "") -> Settings:
    parsed = parse_settings((HEAD + text).encode(), "c.yaml")
    return resolve_settings(parsed, Path("/etc/r"), Host(home=Path("/u"), uid=1, host_name="n", cpus=1), "c.yaml")


def hard(text: str = "") -> dict[str, str]:
    return {t.signal.value: t.value.quantity or f"{t.value.percentage:.2f}" for t in parse(text)}


def parse(text: str = "") -> tuple[Threshold, ...]:
    return parse_thresholds(settings(text).eviction)


def test_the_defaults_are_the_kubelets() -> None:
    assert hard() == {
        "memory.available": "100Mi",
        "nodefs.available": "0.10",
        "nodefs.inodesFree": "0.05",
        "imagefs.available": "0.15",
        "imagefs.inodesFree": "0.05",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("evictionHard: {}", {}),
        ("evictionHard: {memory.available: 1Gi}", {"memory.available": "1Gi"}),
        ("evictionHard: {memory.available: 0%, pid.available: 100%}", {}),
        ("evictionHard: {memory.available: 1024Mi}", {"memory.available": "1Gi"}),
    ],
)
def test_one_that_is_stated_drops_the_others(text: str, expected: dict[str, str]) -> None:
    assert hard(text) == expected


def test_merged_with_the_defaults_they_stay() -> None:
    merged = hard("mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi, nodefs.available: 0%}")
    assert merged == {
        **{name: share for name, share in hard().items() if name != "nodefs.available"},
        "memory.available": "1Gi",
    }


def test_a_soft_one_has_its_grace_and_what_is_reclaimed_beyond_it() -> None:
    [found] = parse(
        "evictionHard: {}\nevictionSoft: {memory.available: 10%}\nevictionSoftGracePeriod: {memory.available: 1m30s}\n"
        "evictionMinimumReclaim: {memory.available: 1Gi, nodefs.available: 5%}"
    )
    assert (found.signal, found.grace_period_s, found.is_hard) == (Signal.MEMORY_AVAILABLE, 90.0, False)
    assert found.min_reclaim == ThresholdValue(quantity="1Gi")


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("evictionHard: {memory: 1Gi}", "evictionHard", "unsupported eviction signal memory"),
        ("evictionHard: {memory.available: '0'}", "evictionHard", "must be positive"),
        ("evictionHard: {memory.available: -1Gi}", "evictionHard", "must be positive"),
        ("evictionHard: {memory.available: 101%}", "evictionHard", "must be 0% to 100%"),
        ("evictionHard: {memory.available: -1%}", "evictionHard", "must be 0% to 100%"),
        ("evictionHard: {memory.available: nan%}", "evictionHard", "finite"),
        ("evictionHard: {memory.available: 1e300%}", "evictionHard", "finite"),
        ("evictionHard: {memory.available: x}", "evictionHard", "'x'"),
        ("evictionHard: {memory.available: 3}", "evictionHard", "must be text, not a whole number"),
        ("evictionSoft: {memory.available: 1Gi}", "evictionSoftGracePeriod", "grace period must be specified"),
        ("evictionSoftGracePeriod: {memory.available: -1s}", "evictionSoftGracePeriod", "positive"),
        ("evictionSoftGracePeriod: {memory.available: 1}", "evictionSoftGracePeriod", "must be text"),
        ("evictionSoftGracePeriod: {memory.available: 1x}", "evictionSoftGracePeriod", "unknown unit"),
        ("evictionMinimumReclaim: {memory.available: 0%}", "evictionMinimumReclaim", "must be positive"),
        ("evictionMinimumReclaim: {memory.available: -1}", "evictionMinimumReclaim", "must be text"),
        ("evictionMinimumReclaim: {memory.available: '-1'}", "evictionMinimumReclaim", "negative"),
    ],
)
def test_a_wrong_one_is_refused_with_setting_and_signal(text: str, field: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(text)
    assert caught.value.field_path.startswith(field)
    assert words in caught.value.message


# Values of Go: float32(strconv.ParseFloat(text, 32)) / 100, times float64(1 << 40).
@pytest.mark.parametrize(
    ("text", "share", "of_tebibyte"),
    [
        ("10%", 0.10000000149011612, 109951164416),
        ("5%", 0.05000000074505806, 54975582208),
        ("12.5%", 0.125, 137438953472),
        ("33.333333%", 0.3333333134651184, 366503854080),
        ("0.1%", 0.0010000000474974513, 1099511680),
        ("1e-40%", 1.0005271035279194e-42, 0),
        # Half way between two of float32, and a bit more: a float64 forgets the bit.
        ("1.00000005960464477539062500000000001%", 0.010000001639127731, 10995118080),
        ("100%%", 1.0, 1 << 40),
    ],
)
def test_a_percentage_has_the_digits_that_go_gives_it(text: str, share: float, of_tebibyte: int) -> None:
    assert parse_percentage(text) == share
    assert ThresholdValue(percentage=share).of(parse_amount("1Ti")).value == of_tebibyte


@pytest.mark.parametrize("text", ["1_0%", " 10%", "10 %", "\u0661%", "0x1p4%", "inf%", "1e999%", "%", f"{'1' * 99}%"])
def test_a_percentage_that_go_would_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="finite number"):
        parse_percentage(text)


@pytest.mark.parametrize(
    ("value", "capacity", "expected"),
    [
        (ThresholdValue(quantity="1Gi"), "2Gi", "1Gi"),
        (ThresholdValue(percentage=0.5), "2Gi", "1Gi"),
        (ThresholdValue(percentage=0.1), "1001", "100"),
    ],
)
def test_a_share_is_one_of_the_capacity(value: ThresholdValue, capacity: str, expected: str) -> None:
    assert str(value.of(parse_amount(capacity))) == expected


def test_the_error_of_the_parser_names_its_mapping() -> None:
    with pytest.raises(ThresholdError) as caught:
        parse_thresholds(EvictionSettings(hard={"memory.available": "-5"}))
    assert caught.value.setting == "evictionHard"
