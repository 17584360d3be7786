"""Acts of a sync for its pod's names."""

from __future__ import annotations

from pathlib import Path

from ipc.k8s.api.v1.pod import HostAlias, Pod, PodDNSConfig
from ipc.k8s.network.network_settings import NetworkSettings
from tests.support.pods import UID, pod
from tests.support.sync import FakeHost, on_host


def configure(host: FakeHost, settings: NetworkSettings) -> None:
    """With a host's address, which is what pods in its network have."""
    host.configure("node", network=settings, host_ips=lambda: ("192.0.2.9",))


def messages(host: FakeHost, reason: str) -> list[str]:
    return [event.message for event in host.events if event.reason == reason]


def test_hosts_are_written_before_the_first_container_and_refreshed(tmp_path: Path) -> None:
    def aliased(name: str) -> Pod:
        return pod(host_network=True, host_aliases=(HostAlias(ip="203.0.113.1", hostnames=(name,)),))

    async def scenario(host: FakeHost) -> None:
        configure(host, NetworkSettings())
        await host.sync(aliased("one"))
        hosts = host.pods_dir / UID / "etc-hosts"
        assert hosts.read_text().endswith("\n# Entries added by HostAliases.\n203.0.113.1\tone\n")
        hosts.write_text("a container's own")
        assert (await host.sync(aliased("one"))).summary.endswith("nothing to do")
        assert hosts.read_text() == "a container's own"
        done = await host.sync(aliased("two"))
        assert (done.changed, done.summary.endswith("wrote the hosts file")) == (False, True)
        assert hosts.read_text().endswith("\n203.0.113.1\ttwo\n")

    on_host(tmp_path, scenario)


def test_a_resolver_of_its_own_and_what_is_said_of_it(tmp_path: Path) -> None:
    config = PodDNSConfig(nameservers=tuple(f"192.0.2.{number}" for number in range(1, 5)))

    async def scenario(host: FakeHost) -> None:
        configure(host, NetworkSettings())
        await host.sync(pod(dns_policy="None", dns_config=config))
        servers = "".join(f"nameserver 192.0.2.{number}\n" for number in range(1, 4))
        assert (host.pods_dir / UID / "resolv.conf").read_text() == servers
        (said,) = messages(host, "DNSConfigForming")
        assert said.endswith("the applied nameserver line is: 192.0.2.1 192.0.2.2 192.0.2.3")
        assert messages(host, "MissingClusterDNS") == []

    on_host(tmp_path, scenario)


def test_podmans_resolver_is_left_alone(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        configure(host, NetworkSettings(cluster_domain="cluster.test"))
        await host.sync(pod())
        assert not (host.pods_dir / UID / "resolv.conf").exists()
        assert len(messages(host, "MissingClusterDNS")) == 1

    on_host(tmp_path, scenario)


def test_a_name_that_cannot_be_fails_the_sandbox(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        done = await host.sync(pod(hostname="h" * 63, subdomain="team", set_hostname_as_fqdn=True))
        assert done.error == "CreatePodSandboxError"
        assert "is too long" in messages(host, "FailedCreatePodSandBox")[0]
        assert host.podman.containers == {}

    on_host(tmp_path, scenario)


def test_a_resolv_conf_that_is_not_there_fails_in_words(tmp_path: Path) -> None:
    async def scenario(host: FakeHost) -> None:
        configure(host, NetworkSettings(resolv_conf=str(tmp_path / "none")))
        done = await host.sync(pod())
        assert done.error == "CreatePodSandboxError"
        assert str(tmp_path / "none") in messages(host, "FailedCreatePodSandBox")[0]

    on_host(tmp_path, scenario)


def test_podman_is_asked_once_about_the_network_of_a_new_sandbox(tmp_path: Path) -> None:
    of = pod("one", "two", dns_config=PodDNSConfig(searches=("a.test",)))

    async def scenario(host: FakeHost) -> None:
        configure(host, NetworkSettings())
        await host.sync(of)
        assert (host.pods_dir / UID / "resolv.conf").read_text() == "search a.test\n"
        assert list(host.runtime.calls).count("inspect_container") == 1

    on_host(tmp_path, scenario)
