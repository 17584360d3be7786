"""Names of a pod, and whom it finds by which name: host name, hosts file, resolver."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

HOSTS: Final = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
TELL: Final = f"hostname; cat /etc/hosts; echo ---; cat /etc/resolv.conf; echo ===; {STAY}"
ALIASES: Final = [{"ip": "203.0.113.1", "hostnames": ["foo", "bar"]}]
PUBLIC: Final = ("8.8.8.8", "8.8.4.4")
"""Servers that Podman writes where the host's servers are on its loopback only."""
SLIRP_FORWARDER: Final = "10.0.2.3"


def told(agent: Agent, name: str, container_name: str = "main") -> tuple[str, str, str]:
    """Words of a container that runs TELL: host name, hosts file, resolv.conf."""
    agent.until(lambda: "===" in agent.output(name, container_name), f"{name} has told")
    hostname, _, rest = agent.output(name, container_name).partition("\n")
    hosts, _, resolv_conf = rest.partition("---\n")
    return hostname, hosts, resolv_conf.partition("===")[0]


def addresses(agent: Agent, name: str) -> list[str]:
    return [entry["ip"] for entry in agent.pods()[name]["status"]["podIPs"]]


def own_lines(agent: Agent, name: str, names: str) -> str:
    return "".join(f"{ip}\t{names}\n" for ip in addresses(agent, name))


def test_every_container_sees_the_managed_hosts_file(agent: Agent) -> None:
    parts = (container(script=TELL), container("other", TELL))
    agent.run(pod("web", *parts, hostAliases=ALIASES, initContainers=[container("first", f"{TELL.split(';')[0]}")]))
    aliases = "\n# Entries added by HostAliases.\n203.0.113.1\tfoo\tbar\n"
    for each in ("main", "other"):
        hostname, hosts, _ = told(agent, "web", each)
        assert hostname == "web"
        assert hosts == HOSTS + own_lines(agent, "web", "web") + aliases
    assert addresses(agent, "web")
    pinged = agent.inside("web", "ping -c1 -W1 foo; ping -c1 -W1 web")
    assert "PING foo (203.0.113.1)" in pinged
    assert f"PING web ({addresses(agent, 'web')[0]})" in pinged


def test_other_aliases_reach_containers_that_run(agent: Agent) -> None:
    agent.run(pod("aliased", container(script=TELL), hostAliases=ALIASES))
    before = agent.eye.pod_table("aliased")
    agent.inside("aliased", "echo 203.0.113.9 own >> /etc/hosts")
    agent.write(pod("aliased", container(script=TELL), hostAliases=ALIASES, labels={"a": "b"}))
    agent.until(lambda: agent.pods()["aliased"]["metadata"].get("labels") == {"a": "b"}, "an edit was taken")
    agent.restart()
    assert "203.0.113.9 own" in agent.inside("aliased", "cat /etc/hosts"), "what the container wrote stays"
    other = [{"ip": "203.0.113.2", "hostnames": ["baz"]}]
    agent.write(pod("aliased", container(script=TELL), hostAliases=other))
    agent.until(lambda: "baz" in agent.inside("aliased", "cat /etc/hosts"), "the new alias is there")
    assert agent.inside("aliased", "cat /etc/hosts") == (
        HOSTS + own_lines(agent, "aliased", "aliased") + "\n# Entries added by HostAliases.\n203.0.113.2\tbaz"
    )
    assert agent.eye.pod_table("aliased") == before


def test_a_host_name_given_instead_of_the_pods(agent: Agent) -> None:
    pods: dict[str, Json] = {
        "plain": {"hostname": "given"},
        "fqdn": {"hostname": "given", "subdomain": "team", "setHostnameAsFQDN": True},
        "domain": {"subdomain": "team"},
        "override": {"hostname": "given", "subdomain": "team", "hostnameOverride": "quite.other"},
    }
    agent.run(*(pod(name, container(script=TELL), **spec) for name, spec in pods.items()))
    full = "given.team.default.svc"
    expected = {
        "plain": ("given", "given"),
        "fqdn": (full, f"{full}\tgiven"),
        "domain": ("domain", "domain.team.default.svc\tdomain"),
        "override": ("quite.other", "quite.other"),
    }
    for name, (hostname, names) in expected.items():
        assert told(agent, name)[:2] == (hostname, HOSTS + own_lines(agent, name, names))


def test_a_domain_name_that_the_kernel_cannot_hold(agent: Agent) -> None:
    agent.write(pod("long", hostname="h" * 40, subdomain="s" * 30, setHostnameAsFQDN=True))
    agent.until(lambda: "FailedCreatePodSandBox" in agent.reasons("long"), "it is told")
    why = agent.reasons("long")["FailedCreatePodSandBox"]
    assert "is too long (64 characters is the max, 83 characters requested)" in why
    agent.remove("long")


def test_the_nodes_hosts_file_in_its_network(agent: Agent) -> None:
    name = "longer-than-any-host-name-that-the-kernel-takes-with-the-namespace"
    agent.run(pod(name, container(script=TELL), hostNetwork=True, hostAliases=ALIASES))
    hostname, hosts, _ = told(agent, name)
    assert hostname == socket.gethostname()
    assert hosts == (
        "# Kubernetes-managed hosts file (host network).\n"
        + Path("/etc/hosts").read_text()
        + "\n# Entries added by HostAliases.\n203.0.113.1\tfoo\tbar\n"
    )
    status = agent.pods()[name]["status"]
    assert status["podIP"] == status["hostIP"]


def test_name_servers(agent: Agent) -> None:
    config = {"nameservers": ["192.0.2.53"], "searches": ["a.test"], "options": [{"name": "ndots", "value": "2"}]}
    agent.run(
        pod("default", container(script=TELL), dnsPolicy="Default"),
        pod("more", container(script=TELL), dnsPolicy="Default", dnsConfig=config),
        pod("none", container(script=TELL), dnsPolicy="None", dnsConfig=config),
        pod("cluster", container(script=TELL), dnsPolicy="ClusterFirstWithHostNet"),
    )
    default = told(agent, "default")[2].splitlines()
    assert any(line.startswith("nameserver ") for line in default), "Podman's, with what forwards to the host's servers"
    stated = Path("/etc/resolv.conf").read_text().split()
    assert [line for line in default if line.split()[-1] in PUBLIC and line.split()[-1] not in stated] == []
    more = told(agent, "more")[2].splitlines()
    assert set(default) - set(more) == set()
    assert set(more) - set(default) == {"nameserver 192.0.2.53", "search a.test", "options ndots:2"}
    assert told(agent, "none")[2] == "search a.test\nnameserver 192.0.2.53\noptions ndots:2\n"
    assert told(agent, "cluster")[2].splitlines() == default
    assert 'Falling back to "Default" policy.' in agent.reasons("cluster")["MissingClusterDNS"]
    assert "MissingClusterDNS" not in agent.reasons("default")


@pytest.mark.slow
def test_another_resolver_is_another_sandbox(agent: Agent) -> None:
    agent.run(pod("moved", container(script=TELL)))
    before = agent.eye.running("moved")
    agent.write(pod("moved", container(script=TELL), dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.1"]}))
    agent.until(lambda: "moved" in agent.pods() and "192.0.2.1" in agent.output("moved"), "it resolves anew")
    now = agent.eye.running("moved")
    assert {c.id for c in now.values()}.isdisjoint(c.id for c in before.values())


def test_a_clusters_dns(new_agent: NewAgent) -> None:
    agent = new_agent(clusterDNS=["192.0.2.10", "192.0.2.11"], clusterDomain="cluster.test")
    agent.start()
    searches = [f"s{number}.test" for number in range(31)]
    agent.run(
        pod("first", container(script=TELL), subdomain="team"),
        pod(
            "many", container(script=TELL), dnsConfig={"nameservers": ["192.0.2.1", "192.0.2.2"], "searches": searches}
        ),
    )
    hosts, resolv_conf = told(agent, "first")[1:]
    assert hosts == HOSTS + own_lines(agent, "first", "first.team.default.svc.cluster.test\tfirst")
    search, *rest = resolv_conf.splitlines()
    assert search.startswith("search default.svc.cluster.test svc.cluster.test cluster.test")
    assert rest == ["nameserver 192.0.2.10", "nameserver 192.0.2.11", "options ndots:5"]
    search, *rest = told(agent, "many")[2].splitlines()
    assert len(search.split()) == 1 + 32
    assert rest == [f"nameserver 192.0.2.{n}" for n in (10, 11, 1)] + ["options ndots:5"]
    problems = agent.messages("many", "DNSConfigForming")
    assert {problem.split(",")[0] for problem in problems} == {
        "Nameserver limits were exceeded",
        "Search Line limits were exceeded",
    }
    assert "MissingClusterDNS" not in agent.reasons("first")
