"""Requests of an httpGet handler: target and headers, and where a redirect leads."""

from __future__ import annotations

import pytest

from ipc.k8s.api.v1.probe import HTTPGetAction, HTTPHeader
from workers.podhttp.endpoints import Endpoint
from workers.podhttp.pod_network import PodNetwork
from workers.podhttp.request import HttpRequest, RedirectError, redirected, request_of

POD = Endpoint(network=PodNetwork(infra_pid=7, ip="10.0.2.100"), host="10.0.2.100", port=8080)


def asked(path: str = "/", *headers: tuple[str, str], endpoint: Endpoint = POD) -> HttpRequest:
    given = tuple(HTTPHeader(name=name, value=value) for name, value in headers)
    return request_of(HTTPGetAction(port=1, path=path, http_headers=given), endpoint, "kube-probe/1.36")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "/"),
        ("/", "/"),
        ("/healthz", "/healthz"),
        ("healthz", "/healthz"),
        ("/a?b=c&d", "/a?b=c&d"),
        ("/a?b=c#d", "/a?b=c"),
        ("?b", "/?b"),
        ("/a b", "/a%20b"),
        ("/a%20b", "/a%20b"),
        ("/ä", "/%C3%A4"),
        ("/a?b=c d", "/a?b=c%20d"),
        ("/a(b);c=d,e:f@g", "/a(b);c=d,e:f@g"),
        ("/%zz", "/%25zz"),
        ("/%zz?a#b", "/%25zz%3Fa%23b"),
        ("/a\r\nX: y", "/a%0D%0AX:%20y"),
        ("http://elsewhere:1/path", "/path"),
        ("//elsewhere/path", "/path"),
        ("//[broken", "//[broken"),
        ("//\u2100/ä?ö", "/%C3%A4?%C3%B6"),
        ("/%zz/ä", "/%25zz/%C3%A4"),
    ],
)
def test_targets(path: str, target: str) -> None:
    assert asked(path).target == target


def test_the_url_as_messages_tell_it() -> None:
    v6 = Endpoint(network=PodNetwork(), host="fd00::1", port=80)
    assert asked("/x?y").url == "http://10.0.2.100:8080/x?y"
    assert asked("/x", endpoint=v6).url == "http://[fd00::1]:80/x"


@pytest.mark.parametrize(
    ("given", "host"),
    [((), "10.0.2.100:8080"), ((("hOsT", "a"), ("Host", "b")), "a"), ((("Host", ""),), "10.0.2.100:8080")],
)
def test_the_host_header(given: tuple[tuple[str, str], ...], host: str) -> None:
    assert asked("/", *given).host == host


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ((), (("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"))),
        ((("user-agent", "mine"),), (("Accept", "*/*"), ("user-agent", "mine"))),
        ((("ACCEPT", ""), ("Accept", "text/html")), (("User-Agent", "kube-probe/1.36"),)),
        ((("Accept", "a"), ("Accept", "b")), (("User-Agent", "kube-probe/1.36"), ("Accept", "a"), ("Accept", "b"))),
        ((("User-Agent", ""),), (("Accept", "*/*"),)),
    ],
)
def test_the_other_headers(given: tuple[tuple[str, str], ...], sent: tuple[tuple[str, str], ...]) -> None:
    assert asked("/", *given).headers == sent


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "http://10.0.2.100:8080/b"),
        ("b", "http://10.0.2.100:8080/x/b"),
        ("?q", "http://10.0.2.100:8080/x/a?q"),
        ("#f", "http://10.0.2.100:8080/x/a"),
        ("//10.0.2.100:9/b", "http://10.0.2.100:9/b"),
        ("http://10.0.2.100/b", "http://10.0.2.100:80/b"),
        ("https://10.0.2.100/b", "https://10.0.2.100:443/b"),
        ("/ä b", "http://10.0.2.100:8080/%C3%A4%20b"),
    ],
)
def test_redirects(location: str, url: str) -> None:
    following = redirected(asked("/x/a"), location)
    assert following is not None
    assert following.url == url
    assert following.endpoint.network == POD.network


@pytest.mark.parametrize("location", ["http://10.0.2.101/", "//example.org/", "https://[fd00::1]:1/", "mailto:a@b"])
def test_redirects_to_another_host(location: str) -> None:
    assert redirected(asked("/"), location) is None


def test_a_host_that_is_no_ascii_is_compared_as_it_is_written() -> None:
    idn = Endpoint(network=PodNetwork(), host="bücher.example", port=8080)
    following = redirected(asked("/x", endpoint=idn), "http://BüCHER.Example:81/ä")
    assert following is not None
    assert (following.url, following.host) == ("http://bücher.example:81/%C3%A4", "bücher.example:81")
    relative = redirected(asked("/x", endpoint=idn), "y")
    assert relative is not None
    assert relative.url == "http://bücher.example:8080/y"
    assert redirected(asked("/x", endpoint=idn), "http://bucher.example/") is None


def test_a_location_that_cannot_be_parsed_is_told_in_ascii() -> None:
    with pytest.raises(RedirectError, match=r'^failed to parse Location header "http://\[%FF%C3%A4": '):
        redirected(asked("/"), "http://[\udcffä")


@pytest.mark.parametrize("location", ["ftp://10.0.2.100/", "http://10.0.2.100:99999/", "http://[fd00::1/"])
def test_redirects_to_nowhere(location: str) -> None:
    with pytest.raises(RedirectError):
        redirected(asked("/"), location)


@pytest.mark.parametrize(
    ("location", "host"),
    [("/b", "example.org"), ("http://10.0.2.100:8080/b", "10.0.2.100:8080"), ("http://10.0.2.100/", "10.0.2.100")],
)
def test_the_host_header_after_a_redirect(location: str, host: str) -> None:
    following = redirected(asked("/", ("Host", "example.org")), location)
    assert following is not None
    assert following.host == host
