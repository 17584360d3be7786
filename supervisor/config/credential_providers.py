"""Reads the configuration of credential providers (kubelet.config.k8s.io, CredentialProviderConfig).

Mirrors pkg/credentialprovider/plugin/config.go: one file, or every file of a directory, in the order of their names.
On purpose stricter: a provider that wants service account tokens (``tokenAttributes``) is refused without a cluster,
which alone has some to give; and a configuration is refused that others than its owner and root can write, since it
names programs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.regular_files import opened_regular_file, read_at_most
from ipc.host.text.durations import parse_duration
from ipc.k8s.api.validation.names import qualified_name_problem
from ipc.link.wire.credential_provider import RESPONSE_VERSIONS, TOKEN_VERSION, CredentialProvider, TokenAttributes
from supervisor.config.settings import Settings, SettingsError
from supervisor.sources.documents.reader import read_documents

CONFIG: Final = "imageCredentialProviderConfig"
BIN_DIR: Final = "imageCredentialProviderBinDir"
KIND: Final = "CredentialProviderConfig"
CONFIG_VERSIONS: Final = tuple(f"kubelet.config.k8s.io/{version}" for version in ("v1", "v1alpha1", "v1beta1"))
BY_TOKEN: Final = "Token"
CACHE_TYPES: Final = ("ServiceAccount", BY_TOKEN)
MAX_FILE_BYTES: Final = 1 << 20
MAX_FILES: Final = 100
MAX_PROVIDERS: Final = 64
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class _Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A wrong field is an error, as upstream."""


class _Variable(_Strict, frozen=True):
    name: str
    value: str


class _TokenAttributes(_Strict, frozen=True):
    service_account_token_audience: str = ""
    require_service_account: bool | None = None
    cache_type: str = ""
    required_service_account_annotation_keys: tuple[str, ...] = ()
    optional_service_account_annotation_keys: tuple[str, ...] = ()


class _Provider(_Strict, frozen=True):
    name: str
    match_images: tuple[str, ...] = ()
    default_cache_duration: str | None = None
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[_Variable, ...] = ()
    token_attributes: _TokenAttributes | None = None


class _Config(_Strict, frozen=True):
    api_version: str
    kind: str
    providers: tuple[_Provider, ...] = ()


def read_credential_providers(settings: Settings) -> tuple[CredentialProvider, ...]:
    """Providers of resolved settings; none without the setting. Raises SettingsError."""
    where, directory = settings.image_credential_provider_config, settings.image_credential_provider_bin_dir
    if not where:
        return ()
    found = [provider for path in _files(Path(where)) for provider in _read(path, directory)]
    names = [provider.name for provider in found]
    if duplicates := [name for name in names if names.count(name) > 1]:
        raise SettingsError(where, "providers", f"duplicate provider name {duplicates[0]!r} found")
    if len(found) > MAX_PROVIDERS:
        raise SettingsError(where, "providers", f"{len(found)} are more than {MAX_PROVIDERS}")
    if not settings.cluster.is_configured and (of_accounts := [it.name for it in found if it.tokens is not None]):
        words = f"provider {of_accounts[0]!r} wants tokens of service accounts, which only a cluster has"
        raise SettingsError(where, "providers", words)
    for provider in found:
        if not os.access(provider.program, os.X_OK) or not os.path.isfile(provider.program):
            raise SettingsError("", BIN_DIR, f"plugin binary executable {provider.program} did not exist")
    return tuple(found)


def _files(where: Path) -> list[Path]:
    """Raises SettingsError."""
    try:
        if not where.is_dir():
            return [where]
        found = sorted(path for path in where.iterdir() if path.suffix in _SUFFIXES and not path.is_dir())
    except OSError as error:
        raise SettingsError(str(where), "", error.strerror or str(error)) from error
    if not found:
        raise SettingsError(str(where), "", "no configuration files found in this directory")
    if len(found) > MAX_FILES:
        raise SettingsError(str(where), "", f"more than {MAX_FILES} files")
    return found


def _read(path: Path, directory: str) -> list[CredentialProvider]:
    """Raises SettingsError."""
    try:
        with opened_regular_file(path) as fd:
            if os.fstat(fd).st_mode & _WRITABLE_BY_OTHERS:
                raise SettingsError(str(path), "", "others than its owner can write it: chmod go-w")
            data = read_at_most(fd, MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(str(path), "", error.strerror or str(error)) from error
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(str(path), "", f"more than {MAX_FILE_BYTES} bytes")
    return parse_credential_providers(data, str(path), directory)


def parse_credential_providers(data: bytes, file: str, directory: str) -> list[CredentialProvider]:
    """Providers of one file, whose programs lie in ``directory``. Pure. Raises SettingsError, which repeats no
    argument and no variable of a provider."""
    read = read_documents(data)
    for error in read.errors:
        raise SettingsError(file, error.field, error.message)
    if len(read.documents) != 1:
        raise SettingsError(file, "", f"must be one document of kind {KIND}")
    try:
        config = msgspec.convert(read.documents[0].value, _Config)
    except msgspec.ValidationError as error:
        raise SettingsError(file, "", str(error)) from None
    if config.kind != KIND or config.api_version not in CONFIG_VERSIONS:
        raise SettingsError(file, "", f"must be of kind {KIND} and of one of {', '.join(CONFIG_VERSIONS)}")
    if not config.providers:
        raise SettingsError(file, "providers", "at least 1 item in plugins is required")
    for number, provider in enumerate(config.providers):
        for field, problem in _problems(provider):
            raise SettingsError(file, f"providers[{number}].{field}", problem)
    return [_made(provider, directory) for provider in config.providers]


def _problems(provider: _Provider) -> Iterator[tuple[str, str]]:
    """validateCredentialProviderConfig."""
    if not provider.name or provider.name in (".", "..") or any(char in provider.name for char in "/ \0"):
        yield "name", "must be the name of a program, without '/' and spaces, and neither '.' nor '..'"
    if provider.api_version not in RESPONSE_VERSIONS:
        yield "apiVersion", f"must be one of {', '.join(RESPONSE_VERSIONS)}"
    if not provider.match_images:
        yield "matchImages", "at least 1 item in matchImages is required"
    if any(not pattern or any(char.isspace() for char in pattern) for pattern in provider.match_images):
        yield "matchImages", "match image is invalid: must be a registry with an optional path, such as *.example.com/a"
    try:
        if provider.default_cache_duration is None or parse_duration(provider.default_cache_duration) < 0:
            yield "defaultCacheDuration", "must be a duration greater than or equal to 0"
    except ValueError as error:
        yield "defaultCacheDuration", str(error)
    if provider.token_attributes is not None:
        for field, problem in _token_problems(provider.token_attributes, provider.api_version):
            yield f"tokenAttributes{field}", problem
    if any("\0" in text for variable in provider.env for text in (variable.name, variable.value)):
        yield "env", "a variable has a NUL"
    if any("\0" in text for text in provider.args):
        yield "args", "an argument has a NUL"


def _token_problems(wanted: _TokenAttributes, api_version: str) -> Iterator[tuple[str, str]]:
    required = wanted.required_service_account_annotation_keys
    optional = wanted.optional_service_account_annotation_keys
    if not wanted.service_account_token_audience:
        yield ".serviceAccountTokenAudience", "is required"
    if wanted.require_service_account is None:
        yield ".requireServiceAccount", "is required"
    if api_version != TOKEN_VERSION:
        yield "", f"is only supported for {TOKEN_VERSION} API version"
    if wanted.require_service_account is False and required:
        words = "requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set"
        yield ".requiredServiceAccountAnnotationKeys", words
    if any(qualified_name_problem(key.lower()) for key in (*required, *optional)):
        yield "", "an annotation key is no qualified name"
    if len({*required, *optional}) != len(required) + len(optional):
        yield "", "annotation keys cannot be there twice, nor both required and optional"
    if wanted.cache_type not in CACHE_TYPES:
        yield ".cacheType", f"must be one of {', '.join(CACHE_TYPES)}"


def _tokens(wanted: _TokenAttributes | None) -> TokenAttributes | None:
    if wanted is None:
        return None
    return TokenAttributes(
        audience=wanted.service_account_token_audience,
        requires_account=bool(wanted.require_service_account),
        required_annotations=wanted.required_service_account_annotation_keys,
        optional_annotations=wanted.optional_service_account_annotation_keys,
        is_kept_by_token=wanted.cache_type == BY_TOKEN,
    )


def _made(provider: _Provider, directory: str) -> CredentialProvider:
    assert provider.default_cache_duration is not None, "it was checked"
    return CredentialProvider(
        name=provider.name,
        program=os.path.join(directory, provider.name),
        api_version=provider.api_version,
        match_images=provider.match_images,
        default_cache_s=parse_duration(provider.default_cache_duration),
        args=provider.args,
        env=tuple((variable.name, variable.value) for variable in provider.env),
        tokens=_tokens(provider.token_attributes),
    )
