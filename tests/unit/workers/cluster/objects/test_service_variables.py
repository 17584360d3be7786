"""Variables of services (pkg/kubelet/envvars/envvars_test.go)."""

from __future__ import annotations

from workers.cluster.objects.service_variables import (
    Service,
    ServiceMeta,
    ServicePort,
    ServiceSpec,
    master_service,
    service_variables,
)


def service(name: str, address: str, *ports: ServicePort, namespace: str = "default") -> Service:
    return Service(ServiceMeta(name, namespace), ServiceSpec(address, ports))


def test_named_ports_and_protocols() -> None:
    found = service_variables(
        [service("foo-bar", "1.2.3.4", ServicePort(8080), ServicePort(8081, "p-2", "UDP"))], "default", links=True
    )
    assert found == {
        "FOO_BAR_SERVICE_HOST": "1.2.3.4",
        "FOO_BAR_SERVICE_PORT": "8080",
        "FOO_BAR_SERVICE_PORT_P_2": "8081",
        "FOO_BAR_PORT": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP_PROTO": "tcp",
        "FOO_BAR_PORT_8080_TCP_PORT": "8080",
        "FOO_BAR_PORT_8080_TCP_ADDR": "1.2.3.4",
        "FOO_BAR_PORT_8081_UDP": "udp://1.2.3.4:8081",
        "FOO_BAR_PORT_8081_UDP_PROTO": "udp",
        "FOO_BAR_PORT_8081_UDP_PORT": "8081",
        "FOO_BAR_PORT_8081_UDP_ADDR": "1.2.3.4",
    }


def test_address_of_version_6_stands_in_brackets() -> None:
    found = service_variables([service("six", "2001:DB8::", ServicePort(80))], "default", links=True)
    assert found["SIX_PORT"] == "tcp://[2001:DB8::]:80"
    assert found["SIX_PORT_80_TCP_ADDR"] == "2001:DB8::"


def test_which_services_are_told() -> None:
    services = [
        service("kubernetes", "10.0.0.1", ServicePort(443)),
        service("headless", "None", ServicePort(1)),
        service("unset", "", ServicePort(1)),
        service("mine", "10.0.0.2", ServicePort(80), namespace="ns"),
        service("other", "10.0.0.3", ServicePort(80), namespace="elsewhere"),
        service("portless", "10.0.0.4", namespace="ns"),
    ]
    hosts = {name: found for name, found in service_variables(services, "ns", links=True).items() if "HOST" in name}
    assert hosts == {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "MINE_SERVICE_HOST": "10.0.0.2",
        "PORTLESS_SERVICE_HOST": "10.0.0.4",
    }
    assert all(name.startswith("KUBERNETES_") for name in service_variables(services, "ns", links=False))


def test_namespaces_own_kubernetes_goes_before_the_master() -> None:
    """The kubelet's map is by name alone, and a namespace's own service replaces the one that was there."""
    services = [service("kubernetes", "10.0.0.1"), service("kubernetes", "10.9.9.9", namespace="ns")]
    assert service_variables(services, "ns", links=True) == {"KUBERNETES_SERVICE_HOST": "10.9.9.9"}
    assert service_variables(services[::-1], "ns", links=True) == {"KUBERNETES_SERVICE_HOST": "10.9.9.9"}


def test_the_operators_master_service_goes_before_the_clusters() -> None:
    services = [master_service("192.0.2.9", 6443), service("kubernetes", "10.96.0.1", ServicePort(443))]
    found = service_variables(services, "ns", links=False)
    assert (found["KUBERNETES_SERVICE_HOST"], found["KUBERNETES_SERVICE_PORT"]) == ("192.0.2.9", "6443")
    assert found["KUBERNETES_SERVICE_PORT_HTTPS"] == "6443"
