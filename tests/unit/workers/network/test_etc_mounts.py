"""The files of a pod that its containers see in /etc."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.v1.container import VolumeMount
from ipc.k8s.api.v1.pod import HostAlias
from ipc.k8s.network.network_settings import NetworkSettings
from tests.support.pods import container, pod
from workers.logs.termination_message import make_termination_log, termination_log
from workers.network.dns import Resolver
from workers.network.etc_mounts import (
    HOSTS_NAME,
    PodFile,
    hosts_text,
    mounted_files,
    refresh_hosts,
    resolver_of,
    write_hosts,
    write_resolv_conf,
)

ALIAS = HostAlias(ip="203.0.113.1", hostnames=("a", "b"))


def test_files_are_written_in_place_and_readable_for_all(tmp_path: Path) -> None:
    made = write_hosts(str(tmp_path), "u1", "long text\n")
    inode = made.path.stat().st_ino
    assert made == PodFile(tmp_path / "u1" / "etc-hosts", "/etc/hosts")
    with made.path.open() as reader:
        write_hosts(str(tmp_path), "u1", "short\n")
        assert reader.read() == "short\n"
    assert (made.path.stat().st_ino, made.path.stat().st_mode & 0o777) == (inode, 0o644)
    assert (tmp_path / "u1").stat().st_mode & 0o777 == 0o700
    resolv_conf = write_resolv_conf(str(tmp_path), "u1", Resolver(servers=("192.0.2.1",)))
    assert (resolv_conf.path.read_text(), resolv_conf.destination) == ("nameserver 192.0.2.1\n", "/etc/resolv.conf")


def test_what_a_container_wrote_stays_until_something_else_is_wanted(tmp_path: Path) -> None:
    assert not refresh_hosts(str(tmp_path), "u1", "one\n"), "there is none yet"
    file = write_hosts(str(tmp_path), "u1", "one\n").path
    with file.open("a") as writer:
        writer.write("own\n")
    assert not refresh_hosts(str(tmp_path), "u1", "one\n")
    assert file.read_text() == "one\nown\n"
    assert refresh_hosts(str(tmp_path), "u1", "two\n")
    assert file.read_text() == "two\n"
    assert refresh_hosts(str(tmp_path), "u1", "one\n"), "what was written before the last does not count"
    assert file.read_text() == "one\n"


def test_a_container_named_as_the_file_keeps_its_termination_message(tmp_path: Path) -> None:
    message = termination_log(str(tmp_path), "u1", HOSTS_NAME, 0)
    make_termination_log(message, 0)
    write_hosts(str(tmp_path), "u1", "one\n")
    assert refresh_hosts(str(tmp_path), "u1", "two\n")
    assert message.exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "u1").mkdir()
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / "u1" / "etc-hosts").symlink_to(other)
    with pytest.raises(OSError, match="symbolic"):
        write_hosts(str(tmp_path), "u1", "text")
    assert other.read_text() == "precious"


def test_a_container_that_mounts_something_there_sees_that(tmp_path: Path) -> None:
    files = (PodFile(tmp_path / "h", "/etc/hosts"), PodFile(tmp_path / "r", "/etc/resolv.conf"))
    own = container("main", volume_mounts=(VolumeMount(name="v", mount_path="/etc//hosts/"),))
    assert [bind["destination"] for bind in mounted_files(own, files)] == ["/etc/resolv.conf"]
    assert mounted_files(container("main"), files[:1]) == (
        {
            "type": "bind",
            "source": str(tmp_path / "h"),
            "destination": "/etc/hosts",
            "options": ["rbind", "rprivate", "rw", "z"],
        },
    )


@pytest.mark.parametrize("refusal", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_knows_the_last_text_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    def link(*_: object) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(os, "link", link)
    for text in ("one\n", "one\n", "two\n"):
        write_hosts(str(tmp_path), "u1", text)
    assert not refresh_hosts(str(tmp_path), "u1", "two\n")
    assert refresh_hosts(str(tmp_path), "u1", "one\n")


def test_whose_hosts_file_it_begins_with() -> None:
    settings = NetworkSettings(cluster_domain="cluster.test")
    own = hosts_text(pod(subdomain="team", host_aliases=(ALIAS,)), ("10.0.0.1", "fd00::1"), settings)
    assert own.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    names = "web.team.default.svc.cluster.test\tweb\n"
    assert own.endswith(f"10.0.0.1\t{names}fd00::1\t{names}\n# Entries added by HostAliases.\n203.0.113.1\ta\tb\n")
    of_node = hosts_text(pod(host_network=True), ("10.0.0.1",), settings)
    assert of_node == "# Kubernetes-managed hosts file (host network).\n" + Path("/etc/hosts").read_text()


def test_pods_of_a_cluster_find_its_api_server_by_name() -> None:
    settings = NetworkSettings(kubernetes_service_ip="192.0.2.1", cluster_domain="cluster.test")
    entry = (
        "\n# Entry added by cluster.kubernetesService.\n"
        "192.0.2.1\tkubernetes.default.svc\tkubernetes.default\tkubernetes\tkubernetes.default.svc.cluster.test\n"
    )
    of_file = pod(host_aliases=(ALIAS,))
    assert entry not in hosts_text(of_file, ("10.0.0.1",), settings)
    for wanted in (of_file, pod(host_network=True)):
        annotations = {**wanted.metadata.annotations, CONFIG_SOURCE: API_SOURCE}
        metadata = msgspec.structs.replace(wanted.metadata, annotations=annotations)
        of_cluster = msgspec.structs.replace(wanted, metadata=metadata)
        nameless = msgspec.structs.replace(settings, kubernetes_service_ip="")
        plain = hosts_text(of_cluster, ("10.0.0.1",), nameless)
        assert hosts_text(of_cluster, ("10.0.0.1",), settings) == plain + entry, "aliases of the pod's count more"


def test_no_resolv_conf_says_nothing(tmp_path: Path) -> None:
    assert resolver_of("") == Resolver()
    (tmp_path / "r").write_text("nameserver 192.0.2.1\n")
    assert resolver_of(os.fspath(tmp_path / "r")) == Resolver(servers=("192.0.2.1",))
    with pytest.raises(FileNotFoundError):
        resolver_of(os.fspath(tmp_path / "none"))
