"""The configuration of credential providers (pkg/credentialprovider/plugin/config_test.go has the kinds of cases)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from ipc.link.wire.credential_provider import CredentialProvider, TokenAttributes
from supervisor.config.credential_providers import parse_credential_providers, read_credential_providers
from supervisor.config.resolution.config_file import parse_settings
from supervisor.config.resolution.resolved_settings import Host, resolve_settings
from supervisor.config.settings import Settings, SettingsError

HEAD = "apiVersion: rootlet.dev/v1alpha1\nkind: RootletConfiguration\n"
HOST = Host(home=Path("/home/u"), uid=1000, host_name="box", cpus=1)
SECRET = "no one may read this"


def provider(name: str = "shop", **changed: Any) -> dict[str, Any]:
    given = {
        "name": name,
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "matchImages": ["*.example.com"],
        "defaultCacheDuration": "10m",
        **changed,
    }
    return {key: value for key, value in given.items() if value is not None}


V1BETA = "credentialprovider.kubelet.k8s.io/v1beta1"


def tokens(**changed: Any) -> dict[str, Any]:
    given = {
        "serviceAccountTokenAudience": "shop",
        "requireServiceAccount": True,
        "cacheType": "ServiceAccount",
        **changed,
    }
    return {key: value for key, value in given.items() if value is not None}


def config(*providers: dict[str, Any], **changed: Any) -> bytes:
    head = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", **changed}
    return yaml.safe_dump({**head, "providers": list(providers)}).encode()


def settings_of(text: str) -> Settings:
    return resolve_settings(parse_settings((HEAD + text).encode(), "c.yaml"), Path("/etc/r"), HOST, "c.yaml")


def settings_for(directory: Path, where: Path) -> Settings:
    return settings_of(f"imageCredentialProviderConfig: {where}\nimageCredentialProviderBinDir: {directory}")


def program(directory: Path, name: str) -> None:
    (directory / name).write_text("#!/bin/sh\n")
    (directory / name).chmod(0o700)


def test_a_provider_is_what_its_file_says() -> None:
    stated = provider(args=["get", SECRET], env=[{"name": "TOKEN", "value": SECRET}])
    (found,) = parse_credential_providers(config(stated), "p.yaml", "/opt/bin")
    assert found == CredentialProvider(
        name="shop",
        program="/opt/bin/shop",
        api_version="credentialprovider.kubelet.k8s.io/v1",
        match_images=("*.example.com",),
        default_cache_s=600.0,
        args=("get", SECRET),
        env=(("TOKEN", SECRET),),
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "one document"),
        (config(), "at least 1 item"),
        (config(provider(), kind="Other"), "must be of kind CredentialProviderConfig"),
        (config(provider(), apiVersion="v1"), "must be of kind CredentialProviderConfig"),
        (config(provider(more=1)), "unknown field"),
        (config(provider("a/b")), r"providers\[0\].name: "),
        (config(provider("a b")), r"providers\[0\].name: "),
        (config(provider("..")), r"providers\[0\].name: "),
        (config(provider(), provider("b", apiVersion="v1")), r"providers\[1\].apiVersion: must be one of"),
        (config(provider(matchImages=None)), "at least 1 item in matchImages is required"),
        (config(provider(matchImages=["a b"])), "match image is invalid"),
        (config(provider(defaultCacheDuration=None)), "greater than or equal to 0"),
        (config(provider(defaultCacheDuration="-1s")), "greater than or equal to 0"),
        (config(provider(defaultCacheDuration="1")), "missing unit"),
        (config(provider(tokenAttributes={})), r"tokenAttributes.serviceAccountTokenAudience: is required"),
        (config(provider(tokenAttributes=tokens(requireServiceAccount=None))), "requireServiceAccount: is required"),
        (config(provider(tokenAttributes=tokens(cacheType="Pod"))), "cacheType: must be one of ServiceAccount, Token"),
        (config(provider(tokenAttributes=tokens(), apiVersion=V1BETA)), "is only supported for credentialprovider"),
        (config(provider(tokenAttributes=tokens(requiredServiceAccountAnnotationKeys=["a b"]))), "no qualified name"),
        (
            config(
                provider(
                    tokenAttributes=tokens(
                        requiredServiceAccountAnnotationKeys=["a"], optionalServiceAccountAnnotationKeys=["a"]
                    )
                )
            ),
            "nor both required and optional",
        ),
        (
            config(
                provider(
                    tokenAttributes=tokens(
                        requireServiceAccount=False, requiredServiceAccountAnnotationKeys=["example.com/a"]
                    )
                )
            ),
            "requireServiceAccount cannot be false",
        ),
        (config(provider(env=[{"name": "TOKEN", "value": f"{SECRET}\0"}])), "has a NUL"),
        (config(provider(env=[{"name": "TOKEN", "value": [SECRET]}])), "got `array`"),
    ],
)
def test_what_is_wrong_is_named_without_a_secret(data: bytes, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as raised:
        parse_credential_providers(data, "p.yaml", "/opt/bin")
    assert SECRET not in str(raised.value)


def test_files_of_a_directory_count_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("one", "two"):
        program(tmp_path, name)
    files = tmp_path / "config"
    files.mkdir(mode=0o755)
    (files / "b.json").write_bytes(config(provider("one")))
    (files / "a.yaml").write_bytes(config(provider("two")))
    (files / "c.txt").write_text("nothing")
    found = read_credential_providers(settings_for(tmp_path, files))
    assert [it.name for it in found] == ["two", "one"]
    (files / "c.yml").write_bytes(config(provider("one")))
    with pytest.raises(SettingsError, match="duplicate provider name 'one'"):
        read_credential_providers(settings_for(tmp_path, files))


def test_without_the_setting_there_is_none() -> None:
    assert read_credential_providers(settings_of("")) == ()


@pytest.mark.parametrize("setting", ["imageCredentialProviderConfig", "imageCredentialProviderBinDir"])
def test_one_of_the_settings_needs_the_other(setting: str) -> None:
    with pytest.raises(SettingsError, match="need each other"):
        settings_of(f"{setting}: /etc/providers")


def test_paths_are_this_host_s() -> None:
    settings = settings_of("imageCredentialProviderConfig: ~/p.yaml\nimageCredentialProviderBinDir: bin")
    assert settings.image_credential_provider_config == "/home/u/p.yaml"
    assert settings.image_credential_provider_bin_dir == "/etc/r/bin"


def test_a_program_that_is_not_there_and_a_file_that_others_write(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    settings = settings_for(tmp_path, file)
    with pytest.raises(SettingsError, match="No such file"):
        read_credential_providers(settings)
    file.write_bytes(config(provider()))
    with pytest.raises(SettingsError, match=r"plugin binary executable .*/shop did not exist"):
        read_credential_providers(settings)
    program(tmp_path, "shop")
    assert len(read_credential_providers(settings)) == 1
    file.chmod(0o666)
    with pytest.raises(SettingsError, match="others than its owner can write it"):
        read_credential_providers(settings)


def test_tokens_of_accounts_are_for_nodes_of_a_cluster(tmp_path: Path) -> None:
    program(tmp_path, "shop")
    wanted = tokens(optionalServiceAccountAnnotationKeys=["example.com/Role"], cacheType="Token")
    where = tmp_path / "p.yaml"
    where.write_bytes(config(provider(tokenAttributes=wanted)))
    where.chmod(0o600)
    alone = settings_for(tmp_path, where)
    with pytest.raises(SettingsError, match="'shop' wants tokens of service accounts, which only a cluster has"):
        read_credential_providers(alone)
    node = msgspec.structs.replace(alone, cluster=msgspec.structs.replace(alone.cluster, kubeconfig="/k"))
    (found,) = read_credential_providers(node)
    assert found.tokens == TokenAttributes(
        audience="shop",
        requires_account=True,
        optional_annotations=("example.com/Role",),
        is_kept_by_token=True,
    )
