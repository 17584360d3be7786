"""Arguments of the program of root's routes: none that would take the host's own ones, and each mistake in words
(`tests/hosts/pod_routes` proves the routes themselves)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

PROGRAM: Final = Path(__file__).parents[2] / "configs" / "cluster" / "pod-routes"
PODS: Final = "10.244.3.0/24"
NOBODY: Final = "nobody-of-this-name"
DEADLINE_S: Final = 30.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "usage: pod-routes USER PODS"),
        ((NOBODY, PODS, PODS, PODS), "usage: pod-routes USER PODS"),
        ((NOBODY, "0.0.0.0/0"), "PODS: '0.0.0.0/0' has a prefix of 0 bits: 8 to 32 are taken"),
        ((NOBODY, "10.244.3.0/33"), "PODS: '10.244.3.0/33' has a prefix of 33 bits"),
        ((NOBODY, "10.244.300.0/24"), "PODS: '10.244.300.0/24' is no range of IPv4"),
        ((NOBODY, "10.244.3.1/24"), "PODS: '10.244.3.1/24' does not begin with the first address of its network"),
        ((NOBODY, "fd00::/64"), "PODS: 'fd00::/64' is no range of IPv4, such as 10.244.3.0/24"),
        ((NOBODY, f"{PODS};reboot"), f"PODS: '{PODS};reboot' is no range"),
        ((NOBODY, PODS, f"{PODS},"), f"BEYOND: '{PODS},' ends with an empty range"),
        ((NOBODY, PODS, f"{PODS},,{PODS}"), "BEYOND: '' is no range of IPv4"),
        ((NOBODY, PODS, "10.0.0.0/8,0.0.0.0/1"), "BEYOND: '0.0.0.0/1' has a prefix of 1 bits"),
        ((NOBODY, PODS), f"USER: nobody here is called '{NOBODY}'"),
        ((NOBODY, PODS, ""), f"USER: nobody here is called '{NOBODY}'"),
        ((NOBODY, "10.08.0.0/16", "10.244.0.0/16,10.96.0.0/12"), f"USER: nobody here is called '{NOBODY}'"),
    ],
)
def test_a_mistake_is_named_before_anything_is_touched(arguments: tuple[str, ...], words: str) -> None:
    """The user comes last, so that one of these tests never gets further."""
    done = subprocess.run(
        ["bash", PROGRAM, *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"pod-routes: {words}")
    assert done.stdout == ""
