"""The configuration: the example file tells the truth, wrong fields are named, values mean what they say."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from ipc.k8s.network.network_settings import NetworkSettings
from ipc.link.wire.server_settings import Port
from supervisor.config.resolution.child_settings import worker_settings
from supervisor.config.resolution.config_file import default_settings, load_settings, parse_settings
from supervisor.config.resolution.resolved_settings import Host, resolve_settings
from supervisor.config.resolution.server_section import listening_addresses, server_settings
from supervisor.config.settings import Settings, SettingsError
from supervisor.config.settings_reload import RELOADABLE, diff_reload
from tests.fakes.ownership import LABEL_KEY

EXAMPLE = Path(__file__).parents[4] / "configs" / "rootlet.yaml"
OPEN_MAPPINGS = {"evictionHard"}
"""Settings of the example whose keys are no settings."""
HEAD = "apiVersion: rootlet.dev/v1alpha1\nkind: RootletConfiguration\n"
HOST = Host(home=Path("/home/u"), uid=1000, host_name="Box.Example", cpus=6)


def parse(text: str) -> Settings:
    return parse_settings((HEAD + text).encode(), "c.yaml")


def resolve(text: str = "", host: Host = HOST) -> Settings:
    return resolve_settings(parse(text), Path("/etc/r"), host, "c.yaml")


def names(section: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Every setting by its dotted name in the file."""
    for field in msgspec.structs.fields(section):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from names(field.type, f"{prefix}{field.encode_name}.")
        else:
            yield prefix + field.encode_name


def keys(value: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, item in value.items():
        if isinstance(item, dict) and item and key not in OPEN_MAPPINGS:
            yield from keys(item, f"{prefix}{key}.")
        else:
            yield prefix + key


def comments() -> dict[str, str]:
    """Dotted name to the comment line above it in the example."""
    found: dict[str, str] = {}
    sections: list[str] = []
    lines = EXAMPLE.read_text().splitlines()
    for above, line in itertools.pairwise(lines):
        if match := re.match(r"( *)(\w+):(.*)", line):
            del sections[len(match[1]) // 2 :]
            sections.append(match[2])
            name = ".".join(sections)
            found[name] = above.strip() if above.strip().startswith("#") else ""
    return found


# --- the example ------------------------------------------------------------------------------------------------


def test_the_example_lists_every_setting_and_nothing_else() -> None:
    assert sorted(keys(yaml.safe_load(EXAMPLE.read_text()))) == sorted(names(Settings))


def test_every_value_of_the_example_is_the_default() -> None:
    assert parse_settings(EXAMPLE.read_bytes(), "rootlet.yaml") == Settings()


def test_the_example_loads() -> None:
    assert load_settings(EXAMPLE).instance_name == "rootlet"


@pytest.mark.parametrize("name", sorted(set(names(Settings)) - {"apiVersion", "kind"}))
def test_every_setting_of_the_example_has_type_and_reason_in_the_line_above(name: str) -> None:
    what, _, why = comments()[name].removeprefix("# ").partition(". ")
    assert what
    assert len(why) > 15
    assert ("reloadable" in what) == (name in RELOADABLE)


def test_reloadable_names_exist() -> None:
    assert set(names(Settings)) >= RELOADABLE


# --- wrong files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("workers: {count: x}", "workers.count", "must be a whole number, not text"),
        ("workers: {coun: 1}", "workers.coun", "unknown field"),
        ("workers: 3", "workers", "must be a mapping, not a whole number"),
        ("syncFreq: 1m", "syncFreq", "unknown field"),
        ("syncFrequency: 20", "syncFrequency", 'must be a duration such as "1m30s", not a whole number'),
        (
            "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: -1}]",
            "shutdownGracePeriodByPodPriority",
            "shutdownGracePeriodSeconds must be 0 to 86400",
        ),
        ("syncFrequency: 20x", "syncFrequency", 'unknown unit "x" in duration "20x"'),
        ("syncFrequency: 0s", "syncFrequency", "0s is not between 1s and 24h0m0s"),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 10m}",
            "crashLoopBackOff.maxContainerRestartPeriod",
            "10m0s is not between 1s and 5m0s",
        ),
        (
            "allowedUnsafeSysctls: [net.a, kernel.x*]",
            "allowedUnsafeSysctls",
            'the sysctls "kernel.x" are not known to be namespaced',
        ),
        ("allowedUnsafeSysctls: net.a", "allowedUnsafeSysctls", "must be a list, not text"),
        ("nodeLabels: {disk: ssd, gpu: 1}", "nodeLabels[...]", "must be text, not a whole number"),
        ("nodeLabels: {disk: a b}", "nodeLabels", "'disk': must be empty or consist of letters"),
        ("nodeLabels: {a b: x}", "nodeLabels", "'a b': name part must consist of"),
        ("maxPods: 0", "maxPods", "0 is not between 1 and 10000"),
        ("maxPods: yes", "maxPods", "must be a whole number, not true or false"),
        ("maxManifestBytes: 1Gi", "maxManifestBytes", "1073741824 is not between 1024 and 16777216"),
        ("maxManifestBytes: 1500m", "maxManifestBytes", "must be whole bytes, not 1500m"),
        ("maxManifestBytes: true", "maxManifestBytes", 'must be a size such as "1Mi", not true or false'),
        ("logging: {format: xml}", "logging.format", "must be one of text, json"),
        ("podman: {service: none}", "podman.service", "must be one of auto, own, user"),
        ("podman: {portForwarder: slirp4netns}", "podman.portForwarder", "must be one of"),
        ("instanceName: My_Host", "instanceName", "must be a DNS label"),
        ("podNetwork: {mode: vxlan}", "podNetwork.mode", "must be one of nothing, slirp4netns, pasta, bridge"),
        ("podNetwork: {bridge: a b}", "podNetwork.bridge", "must be the name of a Podman network"),
        ("clusterDNS: [192.0.2.1, dns.test]", "clusterDNS", "'dns.test' is not an IP address"),
        ("clusterDNS: [192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4]", "clusterDNS", "4 addresses are more than 3"),
        ("clusterDomain: .local", "clusterDomain", "must be a DNS name"),
        ("resolvConf: etc/resolv.conf", "resolvConf", "must be an absolute path, or empty"),
        ("staticPodPath: ''", "staticPodPath", "must be a path"),
        ("staticPodURL: file:///etc/passwd", "staticPodURL", "must be an http or https URL, or empty"),
        ("server: {address: somewhere}", "server.address", "'somewhere' is not an IP address"),
        ("server: {port: 65536}", "server.port", "65536 is not between 0 and 65535"),
        (
            "server: {tlsMinVersion: SSLv3}",
            "server.tlsMinVersion",
            "must be one of nothing, VersionTLS12, VersionTLS13",
        ),
        (
            "server: {authentication: {x509: {clientCAFile: ca.crt}}}",
            "server.authentication.x509.clientCAFile",
            "absolute",
        ),
        ("server: {authorization: {mode: Open}}", "server.authorization.mode", "must be one of AlwaysAllow, Rules"),
        ("staticPodPath: 3", "staticPodPath", "must be a path"),
        ("maxPods: 1\nmaxPods: 2", "maxPods", "line 1: duplicate key"),
        ("a: b: c", "", "line 3: mapping values are not allowed"),
        ("---\na: 1", "", "must be one YAML mapping"),
        ("enforceNodeAllocatable: [system-reserved]", "enforceNodeAllocatable", "valid options are 'pods' or 'none'"),
        (
            "enforceNodeAllocatable: [pods, none]",
            "enforceNodeAllocatable",
            "'none' may not be specified when",
        ),
        ("devices: {gpu: []}", "devices", "gpu: must be the name of an extended resource, such as example.com/gpu"),
        ("devices: {a.b/c d: []}", "devices", "a.b/c d: "),
        ("devices: {a.b/c: [/etc/passwd]}", "devices", "'/etc/passwd' is neither a path below /dev nor a CDI device"),
        ("devices: {a.b/c: [/dev/../etc]}", "devices", "'/dev/../etc' is neither"),
        ("devices: {a.b/c: [/dev/a], a.b/d: [/dev/a]}", "devices", "a.b/d: /dev/a is stated twice"),
        ("devices: {a.b/c: [a.b/c]}", "devices", "'a.b/c' is neither"),
        ("devices: {a.b/c: [9.com/gpu=0]}", "devices", "'9.com/gpu=0' is neither"),
        ("devices: {a.b/c: [a.com/gpu=0-]}", "devices", "'a.com/gpu=0-' is neither"),
        ("devices: {a.b/c: /dev/a}", "devices[...]", "must be a list, not text"),
        ("runtimes: {Kata: /bin/kata}", "runtimes", "'Kata': "),
        ("runtimes: {kata: kata}", "runtimes", "kata: must be the absolute path of a program"),
        ("cdiSpecDirs: ['']", "cdiSpecDirs", "must be a directory"),
    ],
)
def test_a_wrong_field_is_named(text: str, field: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert caught.value.field_path == field
    assert message in caught.value.message
    assert str(caught.value).startswith(": ".join(filter(None, ("c.yaml", field, ""))))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("kind: RootletConfiguration", "apiVersion"),
        ("apiVersion: v2\nkind: RootletConfiguration", "apiVersion"),
        ("apiVersion: rootlet.dev/v1alpha1", "kind"),
        ("apiVersion: rootlet.dev/v1alpha1\nkind: KubeletConfiguration", "kind"),
        ("[1]", ""),
        ("", ""),
    ],
)
def test_another_kind_of_file_is_refused(text: str, field: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text.encode(), "c.yaml")
    assert caught.value.field_path == field


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.yaml: No such file"):
        load_settings(tmp_path / "none.yaml")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(b"#" * (2 << 20))
    with pytest.raises(SettingsError, match="more than 1048576 bytes"):
        load_settings(tmp_path / "c.yaml")


# --- what it means ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("/abs/dir", "/abs/dir"),
        ("rel/dir", "/etc/r/rel/dir"),
        ("./x/../web.yaml", "/etc/r/web.yaml"),
        ("~", "/home/u"),
        ("~/m", "/home/u/m"),
        ("~other/m", "/etc/r/~other/m"),
        ("$HOME/m", "/home/u/m"),
        ("$XDG_CONFIG_HOME/m", "/home/u/.config/m"),
        ("${XDG_RUNTIME_DIR}/m", "/run/user/1000/m"),
        ("$XDG_STATE_HOME/$instanceName", "/state/rootlet"),
        ("$XDG_DATA_HOME", "/home/u/.local/share"),
        ("a$$b", "/etc/r/a$b"),
    ],
)
def test_paths_are_expanded(written: str, means: str) -> None:
    host = msgspec.structs.replace(HOST, environment={"XDG_STATE_HOME": "/state", "XDG_DATA_HOME": "not/absolute"})
    assert resolve(f"staticPodPath: '{written}'", host).static_pod_path == Path(means)


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("staticPodPath: $OTHER/x", "staticPodPath", "unknown $OTHER"),
        ("stateDir: a$", "stateDir", "write $$"),
        ("adminSocket: /" + "x" * 100, "adminSocket", "more than 100 bytes"),
        ("containerRuntimeEndpoint: /run/podman.sock", "containerRuntimeEndpoint", "must begin with unix://"),
        (
            "containerRuntimeEndpoint: unix:///p\npodman: {service: own}",
            "containerRuntimeEndpoint",
            "contradicts podman.service",
        ),
        (
            "containerRuntimeEndpoint: unix:///p\npodman: {store: transient}",
            "podman.store",
            "transient is for the agent's own service",
        ),
        (
            "podman: {service: user, store: transient}",
            "podman.store",
            "transient is for the agent's own service",
        ),
        (
            "podman: {service: user, portForwarder: pasta}",
            "podman.portForwarder",
            "pasta is for the agent's own service",
        ),
        (
            "containerRuntimeEndpoint: unix:///p\npodman: {portForwarder: rootlessport}",
            "podman.portForwarder",
            "rootlessport is for the agent's own service",
        ),
        (
            "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 6s",
            "shutdownGracePeriodCriticalPods",
            "must not be longer than shutdownGracePeriod",
        ),
        ("shutdownGracePeriod: 500ms", "shutdownGracePeriod", "must be 0s or at least 1s"),
        (
            "shutdownGracePeriod: 5s\nshutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 1}]",
            "shutdownGracePeriodByPodPriority",
            "says the same as shutdownGracePeriod",
        ),
    ],
)
def test_what_means_nothing_here_is_refused(text: str, field: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve(text)
    assert caught.value.field_path == field
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("tlsCertFile: /c.pem", "tlsCertFile", "a certificate and its key"),
        ("tlsCipherSuites: [TLS_RSA_WITH_RC4_128_SHA]", "tlsCipherSuites", "'TLS_RSA_WITH_RC4_128_SHA' is none of"),
        ("authorization: {mode: Webhook}", "authorization.mode", "asks a cluster, and this agent has none"),
        ("authorization: {rules: {a: [metrics]}}", "authorization.rules", "for authorization.mode Rules only"),
        ("authorization: {mode: Rules, rules: {a: [exec]}}", "authorization.rules", "'a': 'exec' is none of"),
        ("port: 10250", "authentication", "nobody could ask"),
        ("readOnlyPort: 10255, healthzPort: 10255", "port", "a number of its own"),
    ],
)
def test_a_server_section_that_contradicts_itself_is_refused(text: str, field: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve(f"server: {{{text}}}")
    assert caught.value.field_path == f"server.{field}"
    assert message in caught.value.message


def test_the_server_is_off() -> None:
    assert server_settings(resolve()).ports == ()
    assert listening_addresses(resolve().server) == {}


def test_the_api_servers_part_of_the_server_section() -> None:
    found = server_settings(
        resolve(
            "server: {address: 192.0.2.7, port: 10250, healthzPort: 10248, tlsMinVersion: VersionTLS13,"
            " authentication: {tokenFile: /t}, authorization: {mode: Rules, rules: {p: [metrics]}},"
            " streamingConnectionIdleTimeout: 5m}"
        )
    )
    assert found.ports == (Port.SECURE, Port.HEALTHZ)
    assert found.addresses == ("box.example", "localhost", "127.0.0.1", "::1", "192.0.2.7")
    assert (found.token_file, found.rules, found.streaming_idle_timeout_s) == ("/t", {"p": ("metrics",)}, 300.0)
    assert server_settings(resolve()).rules is None
    assert server_settings(resolve()).addresses[-1] == "::1"
    of_a_cluster = resolve("cluster: {kubeconfig: /k, nodeIP: 192.0.2.9}")
    assert server_settings(of_a_cluster).addresses[-1] == "192.0.2.9"


def test_defaults_are_chosen_for_the_host() -> None:
    settings = resolve()
    assert settings.node_name == "box.example"
    assert settings.workers.count == 4
    assert settings.podman.max_concurrent_mutations == 12
    assert settings.state_dir == Path("/home/u/.local/state/rootlet/rootlet")
    assert settings.admin_socket == Path("/run/user/1000/rootlet/rootlet.sock")
    assert resolve("", msgspec.structs.replace(HOST, cpus=2)).workers.count == 2
    assert resolve("workers: {count: 9}").workers.count == 9


def test_a_bridge_is_for_bridges() -> None:
    with pytest.raises(SettingsError, match=r"podNetwork\.bridge: is for podNetwork\.mode bridge only"):
        resolve("podNetwork: {bridge: pods}")
    text = "podNetwork: {mode: bridge, bridge: pods}\nclusterDNS: [192.0.2.1]\nclusterDomain: a.test\nresolvConf: ''"
    assert worker_settings(resolve(text), "/p.sock", LABEL_KEY).network == NetworkSettings(
        mode="bridge", bridge="pods", cluster_dns=("192.0.2.1",), cluster_domain="a.test", resolv_conf=""
    )
    assert worker_settings(resolve(), "/p.sock", LABEL_KEY).network == NetworkSettings()


def test_instances_share_nothing() -> None:
    one, other = resolve("instanceName: one"), resolve("instanceName: other")
    for attribute in ("state_dir", "admin_socket", "pod_logs_dir"):
        assert getattr(one, attribute) != getattr(other, attribute)


def test_a_host_name_that_is_no_dns_name_asks_for_a_node_name() -> None:
    odd = msgspec.structs.replace(HOST, host_name="my_host")
    with pytest.raises(SettingsError, match="nodeName: the host's name 'my_host'"):
        resolve("", odd)
    assert resolve("nodeName: mine", odd).node_name == "mine"


def test_a_key_with_nothing_behind_it_is_not_set() -> None:
    assert parse("maxPods:\nworkers:\n") == Settings()


def test_a_program_is_looked_up_unless_it_is_a_path() -> None:
    assert resolve().podman.path == "podman"
    assert resolve("podman: {path: bin/podman}").podman.path == "/etc/r/bin/podman"


def test_endpoints_are_expanded() -> None:
    settings = resolve("containerRuntimeEndpoint: unix://$XDG_RUNTIME_DIR/podman/podman.sock")
    assert settings.container_runtime_endpoint == "unix:///run/user/1000/podman/podman.sock"


def test_resolved_settings_are_plain_values_that_a_message_can_carry() -> None:
    settings = resolve("maxManifestBytes: 2Mi\nworkers: {deathPeriod: 90s}")
    assert type(settings.workers.death_period_s) is float
    assert type(settings.max_manifest_bytes) is int
    assert (settings.workers.death_period_s, settings.max_manifest_bytes) == (90.0, 2 << 20)
    workers = worker_settings(settings, "/p.sock", LABEL_KEY)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(workers), type=type(workers)) == workers


def test_default_settings_need_no_file() -> None:
    assert default_settings().workers.count >= 1


# --- for the children, and reloading ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_worker_may_use_all_mutations_of_the_node(count: int) -> None:
    settings = resolve(f"podman: {{maxConcurrentMutations: 9}}\nworkers: {{count: {count}}}")
    assert worker_settings(settings, "/p.sock", LABEL_KEY).max_mutations == 9


@pytest.mark.parametrize("timeout_s", [2, 15, 600])
def test_a_heartbeat_comes_several_times_within_the_timeout_and_no_oftener_than_that_takes(timeout_s: int) -> None:
    settings = resolve(f"workers: {{heartbeatTimeout: {timeout_s}s}}")
    assert worker_settings(settings, "/p.sock", LABEL_KEY).heartbeat_period_s == timeout_s / 4


def test_workers_get_their_part() -> None:
    settings = resolve(
        "nodeName: node\nrelistPeriod: 3s\nquietRelistPeriod: 1m\nruntimeRequestTimeout: 9s\nimagePullTimeout: 8s\n"
        "podLogsDir: /l\n"
        "crashLoopBackOff: {maxContainerRestartPeriod: 7s}\nlogging: {format: json, verbosity: debug}"
    )
    workers = worker_settings(settings, "/p.sock", LABEL_KEY)
    assert (workers.instance, workers.node_name, workers.podman_socket) == ("rootlet", "node", "/p.sock")
    assert workers.label_key == LABEL_KEY
    assert workers.quiet_relist_period_s == 60
    assert (workers.relist_period_s, workers.runtime_request_timeout_s, workers.image_pull_timeout_s) == (3, 9, 8)
    assert (workers.pod_logs_dir, workers.max_container_restart_period_s) == ("/l", 7)
    assert (workers.log.format, workers.log.destination) == ("json", "auto")


def test_log_levels_are_names_or_klogs_numbers_and_areas_have_their_own() -> None:
    areas = (("pleg", "5"), ("libpod", "error"), ("pleg", "0"))
    vmodule = ", ".join(f"{{filePattern: {area}, verbosity: {level}}}" for area, level in areas)
    levels = resolve(f"logging: {{verbosity: 2, vmodule: [{vmodule}]}}").logging.levels
    assert levels.words == ("info", "libpod=error", "pleg=debug")


@pytest.mark.parametrize(
    ("logging", "path", "message"),
    [
        ("{verbosity: loud}", "logging.verbosity", "is no level"),
        ("{verbosity: 11}", "logging.verbosity", "is no level"),
        ("{verbosity: true}", "logging.verbosity", "must be a whole number or text, not true or false"),
        ("{destination: printer}", "logging.destination", "must be one of auto, stderr, journal"),
        ("{vmodule: [{filePattern: plg, verbosity: 1}]}", "logging.vmodule", "'plg' is no area"),
        ("{vmodule: [{filePattern: pleg, verbosity: loud}]}", "logging.vmodule", "is no level"),
        ("{vmodule: [{filePattern: pleg}]}", "logging.vmodule[0]", "verbosity"),
        ("{vmodule: [" + "{filePattern: pleg, verbosity: 1}," * 33 + "]}", "logging.vmodule", "more than 32"),
    ],
)
def test_a_wrong_log_setting_is_refused(logging: str, path: str, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)) as refused:
        resolve(f"logging: {logging}")
    assert refused.value.field_path == path


@pytest.mark.parametrize(
    ("tracing", "path", "message"),
    [
        ("{endpoint: localhost:4317}", "tracing.endpoint", "must be an http:// or https:// URL"),
        ("{endpoint: 'http://user:planted@host/'}", "tracing.endpoint", "without a user"),
        ("{samplingRatePerMillion: 1000001}", "tracing.samplingRatePerMillion", "is not between 0 and 1000000"),
    ],
)
def test_a_wrong_setting_of_traces_is_refused(tracing: str, path: str, message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)) as refused:
        resolve(f"tracing: {tracing}")
    assert refused.value.field_path == path
    assert "planted" not in str(refused.value)


def test_reload_takes_what_it_can_and_names_the_rest() -> None:
    old = resolve("maxPods: 10\nlogging: {verbosity: info}")
    changed = "workers: {count: 3, podsPerWorker: 7, heartbeatTimeout: 4s}\nlogging: {verbosity: debug}"
    new = resolve(f"maxPods: 20\neventHistory: {{ttl: 2h}}\n{changed}")
    applied, restart = diff_reload(old, new)
    assert (applied.max_pods, applied.event_history.ttl_s) == (20, 7200.0)
    assert (applied.workers.count, applied.workers.heartbeat_timeout_s) == (3, old.workers.heartbeat_timeout_s)
    assert applied.workers.pods_per_worker == 7
    assert applied.logging == new.logging
    assert sorted(restart) == ["workers.heartbeatTimeout"]


def test_reload_of_the_same_changes_nothing() -> None:
    assert diff_reload(resolve(), resolve()) == (resolve(), ())
