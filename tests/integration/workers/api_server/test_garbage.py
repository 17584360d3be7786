"""Garbage through the API server, and the commands that ask for it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ipc.host.clock import wall
from ipc.k8s.kubecontainer.image_gc import ImageReport, Stays
from ipc.link.messages.api_server import CollectGarbage, Reply
from supervisor.protocol.garbage_report import DeadContainer, GarbageReport
from tests.support.api_server import Master
from tests.support.cli import rootlet

PATH = "/rootlet/v1/garbage"
MIB = 1 << 20
LONG_AGO = wall() - 400.5 * 86_400
UNUSED = ImageReport(id="a" * 64, names=("quay.io/a/b:1", "quay.io/a/b:2"), size_bytes=3 * MIB, last_used=LONG_AGO)
NAMELESS = ImageReport(id="b" * 64, size_bytes=MIB)
USED = ImageReport(
    id="c" * 64, names=(f"quay.io/a/c@sha256:{'0' * 64}",), users=("default/web", "x"), stays=Stays.IN_USE, size_bytes=1
)
FOREIGN = ImageReport(id="d" * 64, names=("localhost:5000/mine:1",), stays=Stays.FOREIGN)


class Garbage:
    """Answers as the master does."""

    def __init__(self, master: Master, **found: Any) -> None:
        self._found = found
        self.dry_runs: list[bool] = []
        master.answer = self.answer
        master.ready()

    def answer(self, request: Any) -> Reply:
        assert isinstance(request, CollectGarbage)
        self.dry_runs.append(request.dry_run)
        report = GarbageReport(dry_run=request.dry_run, **self._found)
        return Reply(request_id=request.request_id, code=200, message=msgspec.json.encode(report).decode())


async def test_a_look_is_a_dry_run_and_a_collection_is_none(master: Master) -> None:
    garbage = Garbage(master, images=(UNUSED,), freed_bytes=7)
    async with master.http.get(PATH) as answer:
        assert (answer.status, (await answer.json())["images"][0]["names"]) == (200, list(UNUSED.names))
    async with master.http.post(PATH) as answer:
        assert (answer.status, (await answer.json())["freedBytes"]) == (200, 7)
    assert garbage.dry_runs == [True, False]


async def test_images_as_a_table(master: Master) -> None:
    Garbage(master, images=(UNUSED, NAMELESS, USED, FOREIGN))
    shown = await rootlet(master, "images")
    assert (shown.code, shown.err) == (0, "")
    header, *rows = (line.split("   ") for line in shown.out.splitlines())
    assert [cell.strip() for cell in header if cell] == [
        "REPOSITORY",
        "TAG",
        "IMAGE ID",
        "SIZE",
        "LAST USED",
        "USED BY",
        "KEPT",
    ]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["quay.io/a/b", "1", "a" * 12, "3.0Mi", "400d ago", "<none>", "<none>"],
        ["quay.io/a/b", "2", "a" * 12, "3.0Mi", "400d ago", "<none>", "<none>"],
        ["<none>", "<none>", "b" * 12, "1.0Mi", "<none>", "<none>", "<none>"],
        ["quay.io/a/c", f"sha256:{'0' * 64}", "c" * 12, "0.0Mi", "now", "default/web and 1 more", "in use"],
        ["localhost:5000/mine", "1", "d" * 12, "0.0Mi", "<none>", "<none>", "not pulled by this agent"],
    ]
    assert json.loads((await rootlet(master, "images", "-o", "json")).out)["images"][1]["sizeBytes"] == MIB
    unused = (await rootlet(master, "images", "--unused")).out
    assert ("c" * 12 in unused, "d" * 12 in unused) == (False, True)


async def test_a_collection_says_what_goes_and_why(master: Master) -> None:
    dead = DeadContainer(id="e" * 64, name="main", pod="default/job")
    Garbage(
        master,
        images=(UNUSED, NAMELESS, USED, FOREIGN),
        containers=(dead,),
        directories=("/logs/x",),
        freed_bytes=4 * MIB,
        capacity_bytes=100,
        available_bytes=20,
    )
    dry = await rootlet(master, "gc", "--dry-run")
    assert (dry.code, dry.err) == (0, "")
    assert dry.out.splitlines() == [
        "image/quay.io/a/b:1 would be removed: 3.0Mi, last used 400d ago",
        f"image/{'b' * 12} would be removed: 1.0Mi, never used",
        f"container/default/job/main ({'e' * 12}) would be removed: dead, too many",
        "directory /logs/x would be removed: its pod is gone",
        "up to 4.0Mi would be freed by images; 80% of their file system in use",
    ]
    done = (await rootlet(master, "gc")).out.splitlines()
    assert done[0] == "image/quay.io/a/b:1 removed: 3.0Mi, last used 400d ago"
    assert done[-1] == "4.0Mi freed by images; 80% of their file system in use"


@pytest.mark.parametrize("command", [("gc",), ("gc", "--dry-run"), ("images",)])
async def test_errors_are_told_and_are_an_exit_code(master: Master, command: tuple[str, ...]) -> None:
    Garbage(master, errors=("Podman does not\nanswer",))
    done = await rootlet(master, *command)
    assert (done.code, done.err) == (1, "error: Podman does not answer\n")
