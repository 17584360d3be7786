"""Reasons of failed pulls and starts, by words that Podman has said."""

from __future__ import annotations

import pytest

from ipc.link.messages.sync_error import SyncError
from workers.images.error_reasons import pull_fault, start_fault

IMAGE = "registry.test:5000/app:1"
REFUSED = 'Get "https://registry.test:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused'
AWAY = (
    f"initializing source docker://{IMAGE}: pinging container registry registry.test:5000: {REFUSED}",
    f"unable to copy from source docker://{IMAGE}: initializing source docker://{IMAGE}: pinging container registry "
    f"registry.test:5000: {REFUSED}",
    'pinging container registry nowhere.test: Get "https://nowhere.test/v2/": dial tcp: lookup nowhere.test: no such '
    "host",
    'pinging container registry a.test: Get "https://a.test/v2/": dial tcp 10.9.9.9:443: i/o timeout',
)
REJECTED = (
    "Source image rejected: Running image docker://registry.test:5000/app:1 is rejected by policy.",
    "copying system image from manifest list: Source image rejected: A signature was required, but no signature exists",
    f"unable to copy from source docker://{IMAGE}: Source image rejected: None of the signatures were accepted",
)
OTHERS = (
    "",
    f"reading manifest 1 in {IMAGE}: manifest unknown",
    "unauthorized: authentication required",
    'pinging container registry a.test: Get "https://a.test/v2/": x509: certificate signed by unknown authority',
    'Get "https://blobs.test/1": dial tcp 10.9.9.9:443: i/o timeout',
    'writing blob: "Source image rejected: nothing"',
    "not done within 600 s",
)


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        *((each, SyncError.REGISTRY_UNAVAILABLE, "because the registry is unavailable: ") for each in AWAY),
        *(
            (each, SyncError.SIGNATURE_VALIDATION_FAILED, "because the signature validation failed: ")
            for each in REJECTED
        ),
    ],
)
def test_why_a_pull_has_failed(message: str, reason: SyncError, words: str) -> None:
    assert pull_fault(IMAGE, message) == (reason, f"image pull failed for {IMAGE} {words}{message}")


@pytest.mark.parametrize("message", OTHERS)
def test_another_failed_pull_is_told_in_podmans_words(message: str) -> None:
    assert pull_fault(IMAGE, message) == (SyncError.IMAGE_PULL, message)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f'creating image volume "{IMAGE}":"/v": {IMAGE}: image not known', SyncError.IMAGE_VOLUME_MOUNT_FAILED),
        (f'mounting image volume "{IMAGE}":"/v": layer not known', SyncError.IMAGE_VOLUME_MOUNT_FAILED),
        (f'creating overlay mount for image "{IMAGE}" failed: x', SyncError.IMAGE_VOLUME_MOUNT_FAILED),
        ("crun: executable file `nosuch` not found in $PATH", SyncError.RUN_CONTAINER),
    ],
)
def test_why_a_start_has_failed(message: str, reason: SyncError) -> None:
    assert start_fault(message) is reason
