"""Holds a pod's traffic to its annotations: token bucket filters on the devices of its own network.

Does what the CNI plugin bandwidth does for a cluster (plugins/meta/bandwidth), which shapes the host's end of a pair of
devices. A rootless pod has none there, but its network namespace belongs to Podman's user namespace, in which this user
has all privileges. So the filter of what leaves the pod lies on its device, and what comes in is led through a second
device (ifb) with a filter of its own. tc(8) and ip(8) of iproute2 do it. A container that has NET_ADMIN can undo it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.network.bandwidth import UNLIMITED, Bandwidth, pod_bandwidth
from ipc.link.messages import event_reasons
from workers.dialer.namespaces import open_network, user_namespace_above
from workers.kubecontainer.mounted_volume import why
from workers.network.sandbox_network import SandboxNetwork
from workers.sync.run import SyncRun

IFB: Final = "rootlet-ifb"
"""Device through which a pod's ingress is led."""
LATENCY: Final = "400ms"
"""Longest wait of a packet for its turn (tc-tbf(8))."""
LEAST_BURST_BYTES: Final = 128 * 1024
"""Twice the largest packet: pasta's devices take 64 KiB at once, and a filter drops what is larger than its bucket."""
BURST_S: Final = 0.05
"""Traffic that may pass at once, in seconds of the rate."""
DEADLINE_S: Final = 10.0
MAX_REMEMBERED: Final = 4096
"""Most pods that are remembered; the oldest goes first, and is shaped once more."""
_SBIN: Final = "/usr/sbin:/sbin"
"""Directories that an ordinary user's PATH may lack."""
_HOST: Final = "the pod is in the host's network"


class BandwidthShaper:
    """Remembers the networks that one worker has shaped. Doing it twice changes nothing."""

    def __init__(self) -> None:
        self._shaped: dict[str, tuple[int, Bandwidth]] = {}

    async def shape(self, run: SyncRun, pod: Pod, network: SandboxNetwork) -> None:
        """Shape the network of a pod that asks for it, once; an event says why that cannot be. Raises SyncEnded."""
        wanted, uid = pod_bandwidth(pod.metadata.annotations), run.pod.uid
        if wanted == UNLIMITED or not (network.pid or pod.spec.host_network):
            return
        state = (0 if pod.spec.host_network else network.pid), wanted
        if self._shaped.get(uid) == state:
            return
        run.step("shaping the network")
        problem = _HOST if pod.spec.host_network else await self._try(run, network.pid, wanted)
        self._shaped.pop(uid, None)
        self._shaped[uid] = state
        if len(self._shaped) > MAX_REMEMBERED:
            del self._shaped[next(iter(self._shaped))]
        if problem:
            await run.event(event_reasons.BANDWIDTH_NOT_LIMITED, f"bandwidth of the pod is not limited: {problem}")

    async def _try(self, run: SyncRun, pid: int, wanted: Bandwidth) -> str:
        """Why it failed; empty when the network is shaped."""
        try:
            return await run.in_files("bandwidth", _shape, pid, wanted)
        except OSError as error:
            return why(error)


def _shape(pid: int, wanted: Bandwidth) -> str:
    """Blocks. Raises OSError."""
    path = f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"
    programs = {name: shutil.which(name, path=path) for name in ("nsenter", "ip", "tc")}
    if missing := [name for name, found in programs.items() if found is None]:
        return f"{', '.join(missing)} not found (iproute2, util-linux)"
    devices = _devices(Path(f"/proc/{pid}/net/dev").read_text())
    network = open_network(pid)
    try:
        owner = user_namespace_above(network)
        if owner is None:
            return _HOST
        try:
            for program, lines in _batches(wanted, devices):
                if problem := _run(programs, network, owner, program, lines):
                    return problem
        finally:
            os.close(owner)
    finally:
        os.close(network)
    return ""


def _run(programs: dict[str, str | None], network: int, owner: int, program: str, lines: Sequence[str]) -> str:
    """Run one batch in the pod's network; the first line of what went wrong. Raises OSError."""
    enter = [f"--user=/proc/self/fd/{owner}", f"--net=/proc/self/fd/{network}", "--preserve-credentials"]
    command = [str(programs["nsenter"]), *enter, str(programs[program]), "-batch", "-"]
    try:
        done = subprocess.run(
            command,
            input="".join(f"{line}\n" for line in lines),
            pass_fds=(network, owner),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{program} took more than {DEADLINE_S:.0f} s"
    if done.returncode == 0:
        return ""
    words = (done.stderr or done.stdout).strip().splitlines()
    return f"{program}: {words[0] if words else f'exit code {done.returncode}'}"


def _devices(table: str) -> list[str]:
    """Names of the devices in /proc/net/dev."""
    return [line.partition(":")[0].strip() for line in table.splitlines() if ":" in line]


def _batches(wanted: Bandwidth, devices: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Programs with the lines that each is given, in their order."""
    there = list(devices)
    own = [device for device in there if device not in ("lo", IFB)]
    if wanted.ingress is not None:
        yield "ip", [*([] if IFB in there else [f"link add {IFB} type ifb"]), f"link set {IFB} up"]
        yield "tc", [_filter(IFB, wanted.ingress), *(line for device in own for line in _led_to_ifb(device))]
    if wanted.egress is not None:
        yield "tc", [_filter(device, wanted.egress) for device in own]


def _filter(device: str, rate: int) -> str:
    burst_bytes = max(LEAST_BURST_BYTES, int(rate * BURST_S / 8))
    return f"qdisc replace dev {device} root tbf rate {rate}bit burst {burst_bytes}b latency {LATENCY}"


def _led_to_ifb(device: str) -> tuple[str, str]:
    every = "protocol all prio 1 handle 800::1 u32 match u32 0 0"
    return (
        f"qdisc replace dev {device} ingress",
        f"filter replace dev {device} parent ffff: {every} action mirred egress redirect dev {IFB}",
    )
