"""JSON as Rootlet reads and writes it, by msgspec, orjson and the standard library, side by side.

    python -m tests.bench.json [--seconds 0.5] [--rounds 5]

The texts are those of the simulated Podman service and of the agent's own API, in shapes and sizes of the real ones.
Microseconds of CPU for one text: median and spread of the rounds, which take turns.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, Final

import msgspec
import orjson

from ipc.api.decode import decode_pod, encode_pod
from ipc.api.v1.pod import Pod
from supervisor.load_test.generate import Load, batches
from workers.libpod import decode

TEMPLATES: Final = Path(__file__).parents[1] / "fakes" / "libpod_answers.json"
LISTED: Final = 600
"""Containers in the list: 300 pods."""
PODS: Final = 500
"""In a list of the API server's."""

Work = Callable[[], object]


def cases() -> Mapping[str, Mapping[str, Work]]:
    templates: Any = json.loads(TEMPLATES.read_bytes())
    listed = json.dumps([templates["listed"]] * LISTED).encode()
    inspected = json.dumps(templates["inspect"]).encode()
    container: Any = templates["inspect"]
    spec: Any = {key: container[key] for key in ("Config", "HostConfig", "Mounts") if key in container}
    pod = a_pod()
    shown = json.loads(encode_pod(pod))
    answer = json.dumps({"kind": "PodList", "items": [shown] * PODS}).encode()
    logins = json.dumps(
        {"auths": {f"registry-{n}.example": {"auth": "dXNlcjpwYXNz" * 4} for n in range(8000)}}
    ).encode()
    typed: Any = msgspec.json.Decoder(list[dict[str, Any]])
    return {
        f"list of {LISTED} containers into values ({_kib(listed)})": {
            "msgspec, by shape": lambda: decode.decode_containers(listed),
            "orjson, plain": lambda: orjson.loads(listed),
            "msgspec, plain": lambda: typed.decode(listed),
            "json, plain": lambda: json.loads(listed),
        },
        f"an inspected container into a value ({_kib(inspected)})": {
            "msgspec, by shape": lambda: decode.decode_container(inspected),
            "orjson, plain": lambda: orjson.loads(inspected),
            "msgspec, plain": lambda: msgspec.json.decode(inspected),
            "json, plain": lambda: json.loads(inspected),
        },
        f"an inspected container, as bundles are, read and written again ({_kib(inspected)})": {
            "orjson": lambda: orjson.dumps(orjson.loads(inspected)),
            "msgspec": lambda: msgspec.json.encode(msgspec.json.decode(inspected)),
            "json": lambda: json.dumps(json.loads(inspected)).encode(),
        },
        f"a container's specification written ({_kib(orjson.dumps(spec))})": {
            "orjson": lambda: orjson.dumps(spec),
            "msgspec": lambda: msgspec.json.encode(spec),
            "json": lambda: json.dumps(spec).encode(),
        },
        f"a pod written ({_kib(encode_pod(pod))})": {
            "msgspec": lambda: encode_pod(pod),
            "orjson, of plain values": lambda: orjson.dumps(msgspec.to_builtins(pod)),
        },
        f"the logins of a Secret looked at ({_kib(logins)})": {
            "orjson": lambda: orjson.loads(logins),
            "msgspec": lambda: msgspec.json.decode(logins),
            "json": lambda: json.loads(logins),
        },
        f"list of {PODS} pods read by the command line ({_kib(answer)})": {
            "orjson": lambda: orjson.loads(answer),
            "msgspec": lambda: msgspec.json.decode(answer),
            "json": lambda: json.loads(answer),
        },
    }


def a_pod() -> Pod:
    load = Load(run="json", pods=1, containers=2, image="localhost/x:1", namespace="default")
    return decode_pod(json.loads(next(batches(load)).body.removeprefix(b"---\n")))


def _kib(text: bytes) -> str:
    return f"{len(text) / 1024:.1f} KiB"


def measure(work: Work, seconds: float) -> float:
    """Microseconds of CPU for one."""
    times, began = 0, process_time()
    while (used := process_time() - began) < seconds:
        work()
        times += 1
    return 1e6 * used / times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.json", description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="of CPU for each way in a round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, msgspec {version('msgspec')}, orjson {version('orjson')}")
    for name, ways in cases().items():
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, work in ways.items():
                taken[way].append(measure(work, options.seconds))
        print(f"{name}:")
        for way, rounds in taken.items():
            print(f"  {way:24} {statistics.median(rounds):10.1f} ({min(rounds):.1f} to {max(rounds):.1f})", flush=True)


if __name__ == "__main__":
    main()
