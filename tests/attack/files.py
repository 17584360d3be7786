"""Attacks by whoever may write into the manifest directory, with something that is no manifest."""

from __future__ import annotations

import os
import threading
from typing import Final

from tests.attack.attack import Attack, all_of
from tests.attack.ground import Ground
from tests.e2e.manifests import pod

BESIDE: Final = pod("beside")
CROWD: Final = 5_000
SPARSE_BYTES: Final = 10 << 30
REWRITES_S: Final = 3.0


def _read(ground: Ground) -> None:
    """The directory is read all the same."""
    ground.agent.run(BESIDE)


def _names(ground: Ground) -> None:
    for name in (b"\xff\xfe.yaml", b"\xff\xfe", b"evil-\xc3\x28.json", b"\x1b[2J\xe2\x80\xae.yaml", b"a\nb.yaml"):
        ground.put(ground.agent.manifests, name, b"{")


def _names_in_the_parent(ground: Ground) -> None:
    for number in range(10):
        ground.put(ground.agent.manifests.parent, b"\xff-%d" % number, b"")


def _links(ground: Ground) -> None:
    for name, target in {
        "environ.yaml": "/proc/self/environ",
        "zero.yaml": "/dev/zero",
        "loop.yaml": "loop.yaml",
        "nowhere.yaml": "/nowhere/at/all",
        "root.yaml": "/",
        "kmsg.yaml": "/proc/kmsg",
    }.items():
        ground.link(name, target)
    ground.until(lambda: "environ.yaml" in ground.agent.log_text(), "a link is refused")


def _no_files(ground: Ground) -> None:
    ground.fifo("fifo.yaml")
    sparse = ground.put(ground.agent.manifests, b"sparse.yaml", b"")
    os.truncate(sparse, SPARSE_BYTES)
    closed = ground.put(ground.agent.manifests, b"closed.yaml", b"{}")
    os.chmod(closed, 0)


def _rewrite(ground: Ground) -> None:
    """As fast as one can, one that is a pod and one that is none in turn."""
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            ground.agent.write_file("restless.yaml", "{" if number % 2 else "[" * (number % 1000))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        ground.last(REWRITES_S)
    finally:
        ended.set()
        thread.join()


def _crowd(ground: Ground) -> None:
    """The canary's file and another that was there stay among those that are read, and edits of them count."""
    ground.agent.run(BESIDE)
    for number in range(CROWD):
        ground.put(ground.agent.manifests, b"aa-%05d.yaml" % number, b"kind: %d" % number)
    ground.until(lambda: "manifests are not read" in ground.agent.log_text(), "the crowd is told of")
    uid = ground.agent.pods()["beside"]["metadata"]["uid"]
    ground.write({**BESIDE, "metadata": {**BESIDE["metadata"], "labels": {"edited": "yes"}}})

    def is_edited() -> bool:
        found = ground.agent.pods().get("beside", {}).get("metadata", {})
        return bool(found.get("uid") == uid and found.get("labels", {}).get("edited") == "yes")

    ground.until(is_edited, "an edit beside the crowd counts")


def _many(ground: Ground) -> None:
    for number in range(2000):
        ground.put(ground.agent.manifests, b"many-%04d.yaml" % number, b"kind: %d" % number)


ATTACKS: Final = (
    Attack(
        "file-names",
        "A file's name in the manifest directory is no UTF-8, or steers a terminal.",
        "be left unread",
        all_of(_names, _read),
    ),
    Attack(
        "file-names-in-the-parent",
        "A file's name beside the manifest directory is no UTF-8.",
        "nothing: it is no manifest",
        all_of(_names_in_the_parent, _read),
        is_quick=False,
    ),
    Attack(
        "file-links",
        "Manifests are links to /proc/self/environ, /dev/zero, themselves, nothing and /.",
        "be refused in words",
        all_of(_links, _read),
        is_quick=False,
    ),
    Attack(
        "file-kinds",
        "Manifests are a FIFO, 10 GiB of nothing, and a file that may not be read.",
        "be refused in words",
        all_of(_no_files, _read),
        is_quick=False,
    ),
    Attack(
        "file-rewritten",
        "A manifest is written anew as fast as a program can.",
        "be read late",
        all_of(_rewrite, _read),
        is_quick=False,
    ),
    Attack(
        "file-crowd",
        "There come more manifests than are read.",
        "be told of, a part of them without an event each",
        _crowd,
        is_quick=False,
    ),
    Attack(
        "file-flood",
        "Two thousand broken manifests appear at once.",
        "be refused, a part of them without an event each",
        all_of(_many, _read),
        is_quick=False,
    ),
)
