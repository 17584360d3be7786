"""cAdvisor's v1 MachineInfo: what the host is made of (vendor/github.com/google/cadvisor/info/v1/machine.go)."""

from __future__ import annotations

import msgspec


class FsInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file system that the node's files lie on."""

    device: str
    capacity: int
    type: str
    inodes: int
    has_inodes: bool


class NetInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A network device of the host."""

    name: str
    mac_address: str
    speed: int | None = None
    """Mbit/s; None when the driver does not say."""
    mtu: int | None = None


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """One core and its hardware threads."""

    core_id: int
    thread_ids: tuple[int, ...]
    socket_id: int


class NumaNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One NUMA node."""

    node_id: int
    memory: int | None = None
    cores: tuple[Core, ...] = ()


class MachineInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host. A figure that is not known has no key."""

    num_cores: int
    """Hardware threads."""
    num_physical_cores: int | None = None
    num_sockets: int | None = None
    cpu_frequency_khz: int | None = None
    memory_capacity: int | None = None
    swap_capacity: int | None = None
    machine_id: str = ""
    system_uuid: str = ""
    """Empty where only root may read it."""
    boot_id: str = ""
    filesystems: tuple[FsInfo, ...] = ()
    network_devices: tuple[NetInfo, ...] = ()
    topology: tuple[NumaNode, ...] = ()
    cloud_provider: str = msgspec.field(default_factory=lambda: "Unknown")
    instance_type: str = msgspec.field(default_factory=lambda: "Unknown")
    instance_id: str = msgspec.field(default_factory=lambda: "None")
