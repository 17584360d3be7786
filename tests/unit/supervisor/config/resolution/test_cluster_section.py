"""The section ``cluster:``: what is refused, and what the node worker gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.k8s.api.v1.scheduling import Taint
from ipc.link.wire.cluster_settings import ClusterSettings, NetworkScope
from supervisor.config.resolution.cluster_section import cluster_settings, configured_node_ips
from supervisor.config.resolution.config_file import parse_settings
from supervisor.config.resolution.resolved_settings import Host, resolve_settings
from supervisor.config.settings import Settings, SettingsError
from supervisor.config.settings_reload import diff_reload

HEAD = "apiVersion: rootlet.dev/v1alpha1\nkind: RootletConfiguration\n"
HOST = Host(home=Path("/home/u"), uid=1000, host_name="n1", cpus=2)


def resolve(text: str = "") -> Settings:
    return resolve_settings(parse_settings((HEAD + text).encode(), "c.yaml"), Path("/etc/r"), HOST, "c.yaml")


def test_without_a_kubeconfig_there_is_no_cluster() -> None:
    assert cluster_settings(resolve()) is None
    alone = resolve("cluster: {nodeIP: 192.0.2.1, registerNode: false, registerWithTaints: []}")
    assert cluster_settings(alone) is None
    assert configured_node_ips(alone) == ()


def test_the_clusters_part_of_the_settings() -> None:
    found = cluster_settings(
        resolve(
            "nodeStatusUpdateFrequency: 5s\npodNetwork: {mode: bridge}\n"
            "nodeLabels: {disk: ssd, node.kubernetes.io/pool: a}\n"
            "cluster: {kubeconfig: ~/k.conf, bootstrapKubeconfig: boot.conf, rotateCertificates: false,"
            " serverTLSBootstrap: true, registerWithTaints: [{key: a.b/c, value: v, effect: NoSchedule}],"
            " providerID: x://1, nodeIP: '192.0.2.1,2001:db8::1', nodeStatusReportFrequency: 1m,"
            " nodeLeaseDurationSeconds: 20, kubeAPIQPS: 5, kubeAPIBurst: 6, eventRecordQPS: 0, eventBurst: 8,"
            " networkScope: Cluster, kubernetesService: '192.0.2.9:6443'}"
        )
    )
    assert found == ClusterSettings(
        kubeconfig="/home/u/k.conf",
        bootstrap_kubeconfig="/etc/r/boot.conf",
        pki_dir="/home/u/.local/state/rootlet/rootlet/pki",
        rotate_certificates=False,
        server_tls_bootstrap=True,
        taints=(Taint(key="a.b/c", value="v", effect="NoSchedule"),),
        node_labels={"disk": "ssd", "node.kubernetes.io/pool": "a"},
        node_ips=("192.0.2.1", "2001:db8::1"),
        provider_id="x://1",
        status_update_s=5.0,
        status_report_s=60.0,
        lease_duration_s=20,
        api_qps=5,
        api_burst=6,
        event_qps=0,
        event_burst=8,
        network_scope=NetworkScope.CLUSTER,
        kubernetes_service=("192.0.2.9", 6443),
    )


def test_who_bootstraps_needs_no_place_for_the_kubeconfig() -> None:
    found = cluster_settings(resolve("cluster: {bootstrapKubeconfig: /b}"))
    assert found is not None
    assert found.kubeconfig == "/home/u/.local/state/rootlet/rootlet/kubelet.conf"


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("cluster: {nodeIP: 127.0.0.1}", "cluster.nodeIP", "loopback"),
        ("cluster: {nodeIP: 'fe80::1'}", "cluster.nodeIP", "link-local"),
        ("cluster: {nodeIP: '192.0.2.1,192.0.2.2'}", "cluster.nodeIP", "dual-stack pair"),
        ("cluster: {registerWithTaints: [{key: a, effect: Never}]}", "cluster.registerWithTaints", "effect"),
        ("cluster: {registerWithTaints: [{key: a b, effect: NoExecute}]}", "cluster.registerWithTaints", "'a b'"),
        (
            "cluster: {registerWithTaints: [{key: a, value: b c, effect: NoExecute}]}",
            "cluster.registerWithTaints",
            "b c",
        ),
        ("cluster: {nodeLeaseDurationSeconds: 3}", "cluster.nodeLeaseDurationSeconds", "3 is not between 4 and 3600"),
        ("cluster: {kubernetesService: api.example}", "cluster.kubernetesService", "192.0.2.1:6443"),
        ("cluster: {networkScope: Some}", "cluster.networkScope", ""),
        ("cluster: {kubeconfig: /a, networkScope: Cluster}", "cluster.networkScope", "needs podNetwork.mode bridge"),
        (
            "podNetwork: {mode: pasta}\ncluster: {bootstrapKubeconfig: /a, networkScope: Cluster}",
            "cluster.networkScope",
            "needs podNetwork.mode bridge",
        ),
        ("cluster: {kubeconfig: /a, bootstrapKubeconfig: /a}", "cluster.kubeconfig", "needs another file"),
        (
            "cluster: {kubeconfig: /a, registerNode: false, registerWithTaints: [{key: a, effect: NoExecute}]}",
            "cluster.registerWithTaints",
            "with registerNode only",
        ),
        (
            "cluster: {kubeconfig: /a, registerWithTaints: [{key: a, effect: NoExecute}, {key: a, effect: NoExecute}]}",
            "cluster.registerWithTaints",
            "same key and effect",
        ),
        ("nodeLabels: {node-role.kubernetes.io/worker: ''}\ncluster: {kubeconfig: /a}", "nodeLabels", "none of the"),
        ("nodeLabels: {k8s.io/x: ''}\ncluster: {kubeconfig: /a}", "nodeLabels", "'k8s.io/x'"),
    ],
)
def test_what_a_node_cannot_be_is_refused(text: str, field: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve(text)
    assert caught.value.field_path.partition("[")[0] == field
    assert message in str(caught.value)


def test_labels_of_kubernetes_that_a_node_may_have() -> None:
    labels = "nodeLabels: {topology.kubernetes.io/zone: z, kubelet.kubernetes.io/a: b, a.node.kubernetes.io/c: d}"
    assert resolve(f"{labels}\ncluster: {{kubeconfig: /a}}").node_labels["topology.kubernetes.io/zone"] == "z"
    assert resolve("nodeLabels: {node-role.kubernetes.io/worker: ''}").node_labels, "without a cluster nobody minds"


def test_a_cluster_needs_a_restart() -> None:
    _, fixed = diff_reload(resolve(), resolve("cluster: {kubeconfig: /a, nodeIP: 192.0.2.1}"))
    assert fixed == ("cluster.kubeconfig", "cluster.nodeIP")
