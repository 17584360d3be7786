"""Hardware and identity of the host, read from /proc and /sys when somebody asks. Mirrors cAdvisor (machine/info.go,
utils/sysinfo)."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from workers.nodestatus.version import HostVersions
from workers.stats import flat_files, host
from workers.statsapi.machine_info import Core, FsInfo, MachineInfo, NetInfo, NumaNode
from workers.statsapi.values import FileSystem

NODES: Final = Path("/sys/devices/system/node")
CPUS: Final = Path("/sys/devices/system/cpu")
NET: Final = Path("/sys/class/net")
_ARCHITECTURES: Final[Mapping[str, str]] = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""Go's names of the machine's."""
_NUMBERED: Final = re.compile(r"(?:cpu|node)([0-9]{1,6})")
_MHZ: Final = re.compile(rb"^cpu MHz\s*:\s*([0-9]+)\.?([0-9]*)", re.MULTILINE)
_PLACE: Final = ("physical_package_id", "core_id")
_VIRTUAL: Final = ("lo", "veth", "docker", "cni", "podman", "tap", "tun")


def read_machine(file_systems: Iterable[FileSystem] = ()) -> MachineInfo:
    """The host, with these of its file systems. Reads many small files: not for the loop."""
    meminfo = flat_files.keyed(flat_files.read("/proc/meminfo"), b":")
    topology = tuple(_topology(meminfo))
    cores = {(core.socket_id, core.core_id) for node in topology for core in node.cores}
    return MachineInfo(
        num_cores=os.cpu_count() or host.cpus(),
        num_physical_cores=len(cores) or None,
        num_sockets=len({socket for socket, _ in cores}) or None,
        cpu_frequency_khz=_frequency_khz(),
        memory_capacity=host.bytes_of(meminfo, "MemTotal"),
        swap_capacity=host.bytes_of(meminfo, "SwapTotal"),
        machine_id=_text("/etc/machine-id") or _text("/var/lib/dbus/machine-id"),
        system_uuid=_text("/sys/class/dmi/id/product_uuid"),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        filesystems=tuple(_fs(fs) for fs in {fs.device or fs.path: fs for fs in file_systems}.values()),
        network_devices=tuple(_network_devices()),
        topology=topology,
    )


def usable_machine(machine: MachineInfo) -> MachineInfo:
    """The machine with the CPUs that pods may have: this agent may be bound to some of them."""
    return msgspec.structs.replace(machine, num_cores=len(os.sched_getaffinity(0)))


def read_versions() -> HostVersions:
    """Versions of kernel and operating system. Reads a file: not for the loop."""
    found = os.uname()
    try:
        image = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        image = ""
    return HostVersions(
        kernel=found.release,
        os_image=image,
        operating_system=found.sysname.lower(),
        architecture=_ARCHITECTURES.get(found.machine, found.machine),
    )


def _topology(meminfo: Mapping[str, int]) -> Iterator[NumaNode]:
    """NUMA nodes; a host without any in /sys is one node with all CPUs."""
    nodes = _numbered(NODES)
    for number in nodes:
        sizes = flat_files.read(f"{NODES}/node{number}/meminfo") or b""
        total = next((line.split()[3] for line in sizes.splitlines() if b"MemTotal" in line), b"")
        yield NumaNode(
            node_id=number,
            memory=int(total) * host.KIB if total.isdigit() else None,
            cores=tuple(_cores(_numbered(NODES / f"node{number}"))),
        )
    if not nodes:
        yield NumaNode(node_id=0, memory=host.bytes_of(meminfo, "MemTotal"), cores=tuple(_cores(_numbered(CPUS))))


def _cores(cpus: list[int]) -> Iterator[Core]:
    threads: dict[tuple[int, int], list[int]] = {}
    for cpu in cpus:
        place = [flat_files.number(flat_files.read(f"{CPUS}/cpu{cpu}/topology/{name}")) for name in _PLACE]
        if place[0] is not None and place[1] is not None:
            threads.setdefault((place[0], place[1]), []).append(cpu)
    for (socket, core), ids in sorted(threads.items()):
        yield Core(core_id=core, thread_ids=tuple(ids), socket_id=socket)


def _numbered(directory: Path) -> list[int]:
    with contextlib.suppress(OSError):
        names = (_NUMBERED.fullmatch(name) for name in os.listdir(directory))
        return sorted(int(match[1]) for match in names if match is not None)
    return []


def _network_devices() -> Iterator[NetInfo]:
    """Devices of the host, without the loopback and those that containers have brought."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(NET))[: flat_files.MAX_INTERFACES]:
            if not name.startswith(_VIRTUAL):
                yield NetInfo(
                    name=name,
                    mac_address=_text(f"{NET}/{name}/address"),
                    speed=flat_files.number(flat_files.read(f"{NET}/{name}/speed")),
                    mtu=flat_files.number(flat_files.read(f"{NET}/{name}/mtu")),
                )


def _frequency_khz() -> int | None:
    highest = flat_files.number(flat_files.read(f"{CPUS}/cpu0/cpufreq/cpuinfo_max_freq"))
    if highest is not None:
        return highest
    found = _MHZ.search(flat_files.read("/proc/cpuinfo") or b"")
    return int(found[1]) * 1000 + int((found[2] or b"0").ljust(3, b"0")[:3]) if found is not None else None


def _fs(fs: FileSystem) -> FsInfo:
    return FsInfo(
        device=fs.device or fs.path,
        capacity=fs.capacity or 0,
        type=fs.type,
        inodes=fs.inodes or 0,
        has_inodes=bool(fs.inodes),
    )


def _text(path: str) -> str:
    return (flat_files.read(path) or b"").decode(errors="replace").strip()
