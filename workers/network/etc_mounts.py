"""The files of a pod that its containers see in /etc: hosts and resolv.conf, as ``<pods_dir>/<uid>/etc-hosts``.

Mirrors makeHostsMount and ensureHostsFile (pkg/kubelet/kubelet_pods.go); resolv.conf is what a CRI runtime makes of
the sandbox's DNS config. Different on purpose: an edit of ``hostAliases`` reaches running containers with the next
sync, and the file is there also when the pod's address is not known.

Containers may write to both. So they are written in place, for a bind mount keeps the file and not its name; and what
a container has made of them stays until the next start of one, or until the pod's manifest says something else.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.private_directories import make_private
from ipc.host.regular_files import opened_regular_file, read_regular_file, write_all
from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.network.network_settings import HOSTS_RESOLV_CONF, NetworkSettings
from workers.kubecontainer.runtime import OciMount
from workers.logs.pod_dirs import pod_directory
from workers.network import dns
from workers.network.hostnames import pod_names
from workers.network.hosts_file import api_server_entry, managed_hosts_file, node_hosts_file

ETC_HOSTS: Final = "/etc/hosts"
ETC_RESOLV_CONF: Final = "/etc/resolv.conf"
HOSTS_NAME: Final = "etc-hosts"
RESOLV_CONF_NAME: Final = "resolv.conf"
_BY_TEXT: Final = f".{HOSTS_NAME}."
"""Begin of the hosts file's second name. No container's name, with which that of its termination message begins, has a
dot there."""
_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
FILE_MODE: Final = 0o644
MAX_HOSTS_BYTES: Final = 1 << 20
"""Most that is read of the host's own hosts file."""


class PodFile(msgspec.Struct, frozen=True):
    """A file on the host, and where a container sees it."""

    path: Path
    destination: str

    def bind(self) -> OciMount:
        """Mount of the file, for ``mounts``. ``z`` is for hosts with SELinux: the pod's containers share the file."""
        return file_mount(self.path, self.destination, "z")


def file_mount(source: Path, destination: str, label: str) -> OciMount:
    """A file of the host that a container may write to, as an OCI mount; ``label`` says who else may, with SELinux."""
    options = ["rbind", "rprivate", "rw", label]
    return {"type": "bind", "source": str(source), "destination": destination, "options": options}


def hosts_text(pod: Pod, ips: Iterable[str], settings: NetworkSettings) -> str:
    """Content of the pod's hosts file. Raises OSError, HostnameError."""
    text = _hosts_text(pod, ips, settings)
    if settings.kubernetes_service_ip and is_api_pod(pod):
        text += api_server_entry(settings.kubernetes_service_ip, settings.cluster_domain)
    return text


def _hosts_text(pod: Pod, ips: Iterable[str], settings: NetworkSettings) -> str:
    aliases = pod.spec.host_aliases
    if pod.spec.host_network:
        return node_hosts_file(read_regular_file(ETC_HOSTS, MAX_HOSTS_BYTES).decode(errors="replace"), aliases)
    return managed_hosts_file(ips, pod_names(pod, settings.cluster_domain), aliases)


def resolver_of(path: str) -> dns.Resolver:
    """Resolver of that resolv.conf; empty when the file is missing or the path is. Raises OSError."""
    if not path:
        return dns.Resolver()
    return dns.parse_resolv_conf(read_regular_file(path, dns.MAX_RESOLV_CONF_BYTES).decode(errors="replace"))


def hosts_resolver() -> dns.Resolver:
    """Resolver that Podman begins with: the host's, or what systemd-resolved asks itself. Raises OSError."""
    try:
        found = resolver_of(HOSTS_RESOLV_CONF)
        return resolver_of(dns.RESOLVED_CONF) if found.servers == dns.RESOLVED_STUB else found
    except FileNotFoundError:
        return dns.Resolver()


def write_hosts(pods_dir: str, uid: str, text: str) -> PodFile:
    """Make the pod's hosts file say that. Raises OSError.

    Its second name says which text was written last, whatever a container makes of it since: a second file would cost
    each start as much as the first.
    """
    hosts = pod_directory(pods_dir, uid) / HOSTS_NAME
    by_text = _name_by_text(hosts, text)
    make_private(hosts.parent)
    for other in os.listdir(hosts.parent):
        if other.startswith(_BY_TEXT) and other != by_text.name:
            hosts.with_name(other).unlink(missing_ok=True)
    _overwrite(hosts, text.encode())
    with contextlib.suppress(FileExistsError):
        _link(hosts, by_text)
    return PodFile(hosts, ETC_HOSTS)


def write_resolv_conf(pods_dir: str, uid: str, resolver: dns.Resolver) -> PodFile:
    """Make the pod's resolv.conf say that. Raises OSError."""
    resolv_conf = pod_directory(pods_dir, uid) / RESOLV_CONF_NAME
    make_private(resolv_conf.parent)
    _overwrite(resolv_conf, dns.render_resolv_conf(resolver).encode())
    return PodFile(resolv_conf, ETC_RESOLV_CONF)


def refresh_hosts(pods_dir: str, uid: str, text: str) -> bool:
    """Rewrite an existing hosts file, unless that text was written last; whether it was rewritten.

    Raises OSError.
    """
    hosts = pod_directory(pods_dir, uid) / HOSTS_NAME
    if not os.path.lexists(hosts) or os.path.lexists(_name_by_text(hosts, text)):
        return False
    write_hosts(pods_dir, uid, text)
    return True


def mounted_files(container: Container, files: Iterable[PodFile]) -> tuple[OciMount, ...]:
    """Binds of the files, without those whose path the container mounts itself."""
    own = {os.path.normpath(mount.mount_path) for mount in container.volume_mounts}
    return tuple(file.bind() for file in files if file.destination not in own)


def _link(file: Path, name: Path) -> None:
    """Give the file a second name, or make an empty file of it where the file system has no hard links. Raises
    OSError."""
    try:
        os.link(file, name)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        name.touch(exist_ok=False)


def _name_by_text(hosts: Path, text: str) -> Path:
    return hosts.with_name(_BY_TEXT + hashlib.sha256(text.encode()).hexdigest())


def _overwrite(file: Path, content: bytes) -> None:
    """In place, and never empty meanwhile: who reads it finds old lines or new ones."""
    with opened_regular_file(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE) as fd:
        os.fchmod(fd, FILE_MODE)
        write_all(fd, content)
        os.ftruncate(fd, len(content))
