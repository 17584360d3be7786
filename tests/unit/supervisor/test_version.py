"""The version that the code states is the one that is installed."""

from importlib import metadata

from supervisor.version import VERSION


def test_the_distribution_takes_its_version_from_the_code() -> None:
    assert metadata.version("rootlet") == VERSION
