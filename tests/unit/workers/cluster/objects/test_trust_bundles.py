"""Trust anchors of a projected source (pkg/kubelet/clustertrustbundle/clustertrustbundle_manager_test.go)."""

from __future__ import annotations

from typing import Final

import pytest

from ipc.k8s.api.v1.meta import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement
from ipc.k8s.api.v1.projected import ClusterTrustBundleProjection
from workers.cluster.objects.trust_bundles import Bundle, BundleMeta, BundleSpec, selected


def block(text: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----"


BUNDLES: Final = (
    Bundle(BundleMeta("b", {"tier": "two"}), BundleSpec("signer", f"{block('B')}\n{block('A')}\n")),
    Bundle(BundleMeta("a", {"tier": "one"}), BundleSpec("signer", f"words\n{block('A')}\n")),
    Bundle(BundleMeta("c"), BundleSpec("other", block("C"))),
)


def of_signer(selector: LabelSelector | None) -> ClusterTrustBundleProjection:
    return ClusterTrustBundleProjection(signer_name="signer", label_selector=selector, path="ca.pem")


def test_by_name() -> None:
    wish = ClusterTrustBundleProjection(name="c", path="ca.pem")
    assert selected(BUNDLES, wish).pem == block("C") + "\n"


def test_by_signer_each_once_in_order() -> None:
    assert selected(BUNDLES, of_signer(LabelSelector())).pem == f"{block('A')}\n{block('B')}\n"


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [("In", ("two",), "BA"), ("NotIn", ("two",), "A"), ("Exists", (), "AB"), ("DoesNotExist", (), "")],
)
def test_by_labels(operator: LabelSelectorOperator, values: tuple[str, ...], expected: str) -> None:
    requirement = LabelSelectorRequirement(key="tier", operator=operator, values=values)
    found = selected(BUNDLES, of_signer(LabelSelector(match_expressions=(requirement,))))
    assert found.pem == "".join(f"{block(name)}\n" for name in expected)


def test_no_selector_means_none() -> None:
    found = selected(BUNDLES, of_signer(None))
    assert (found.pem, found.problem) == ("", 'no trust anchors of signer name "signer"')


def test_missing_one_may_be_optional() -> None:
    wish = ClusterTrustBundleProjection(name="no", path="ca.pem")
    assert selected(BUNDLES, wish).problem == 'no trust anchors of name "no"'
    optional = ClusterTrustBundleProjection(name="no", path="ca.pem", optional=True)
    assert selected(BUNDLES, optional).problem == ""
