"""cAdvisor's ContainerInfo."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.workers.statsapi.test_summary import CONTAINER, NODE, POD
from workers.statsapi.container_info import ContainerInfoRequest, container_info, host_info


def plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_a_container() -> None:
    info = plain(container_info(POD, CONTAINER, [CONTAINER, CONTAINER]))
    assert info["spec"]["labels"]["io.kubernetes.pod.uid"] == "u"
    assert info["spec"]["memory"] == {"limit": 20, "swap_limit": 3}
    assert len(info["stats"]) == 2
    assert info["stats"][0]["cpu"]["usage"] == {"total": 9}
    assert info["stats"][0]["memory"]["working_set"] == 7


def test_the_host() -> None:
    info = plain(host_info([NODE]))
    assert info["name"] == "/"
    assert info["stats"][0]["network"]["interfaces"][0]["tx_dropped"] == 8
    assert info["stats"][0]["filesystem"][0]["usage"] == 30


@pytest.mark.parametrize(("body", "expected"), [("{}", 60), ('{"num_stats": 2}', 2), ('{"start": "x"}', 60)])
def test_a_request(body: str, expected: int) -> None:
    assert msgspec.json.decode(body, type=ContainerInfoRequest).num_stats == expected
