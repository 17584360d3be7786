"""The OCI runtime's config.json of a container, as Podman has written it: the user of its first process, mounts, and
annotations with what Podman knows of it.

Upstream has the user from its runtime (CRI, ContainerStatus.user). The process may have become another user since.

Tried on Podman 4.3.1, 5.4.2, 5.8.6 and 6.1.1, by tests/contract/test_container_look_podman.py and test_exec_podman.py.
Where the file is absent or another: no user in the status, an inspect after each start, commands by exec sessions.
"""

from __future__ import annotations

from typing import Final

import msgspec
import orjson

from ipc.host.regular_files import read_regular_file
from ipc.host.text.json_types import UNDECODABLE, Json
from ipc.k8s.api.v1.status import LinuxContainerUser

MAX_CONFIG_BYTES: Final = 1 << 20
"""Podman's have ten to twenty thousand."""
MAX_PROCESS_BYTES: Final = 16 << 20
"""Longest file of which the process is described to the OCI runtime again."""


class _User(msgspec.Struct, frozen=True, rename="camel"):
    uid: int = 0
    gid: int = 0
    additional_gids: tuple[int, ...] = ()


class _Process(msgspec.Struct, frozen=True):
    user: _User = _User()


class _Mount(msgspec.Struct, frozen=True):
    destination: str = ""
    source: str = ""


class _Root(msgspec.Struct, frozen=True):
    path: str = ""


class _Annotations(msgspec.Struct, frozen=True):
    """Podman's own (libpod, container_internal_common.go, generateSpec), and one of crun's."""

    created: str = msgspec.field(default="", name="io.kubernetes.cri-o.Created")
    stop_signal: str = msgspec.field(default="", name="org.opencontainers.image.stopSignal")
    seccomp_filter: str = msgspec.field(default="", name="run.oci.seccomp_bpf_data")
    """Filter that crun takes instead of the profile (`workers.podman_files.seccomp_filters`)."""


class RuntimeConfig(msgspec.Struct, frozen=True):
    """The fields of a config.json that are used."""

    process: _Process = _Process()
    root: _Root = _Root()
    mounts: tuple[_Mount, ...] = ()
    annotations: _Annotations = _Annotations()


_DECODER: Final = msgspec.json.Decoder(RuntimeConfig)


def read_user(config: str) -> LinuxContainerUser | None:
    """The user of that file; None before the first start, and for a container of a pod with ids of its own, whose file
    Podman 4.3 does not leave open to us. A small file on the disk that Podman itself works on."""
    if not config:
        return None
    try:
        return user_in(read_config(config))
    except (OSError, *UNDECODABLE):
        return None


def user_in(config: RuntimeConfig) -> LinuxContainerUser:
    """The user of the container's first process."""
    user = config.process.user
    return LinuxContainerUser(uid=user.uid, gid=user.gid, supplemental_groups=user.additional_gids)


def read_config(config: str) -> RuntimeConfig:
    """Raises OSError, msgspec.DecodeError."""
    return _DECODER.decode(read_regular_file(config, MAX_CONFIG_BYTES))


def read_process(bundle: str) -> Json:
    """The container's first process, as the OCI runtime specification describes one. Raises OSError,
    orjson.JSONDecodeError, KeyError."""
    process: Json = orjson.loads(read_regular_file(f"{bundle}/config.json", MAX_PROCESS_BYTES))["process"]
    return process
