"""`rootlet describe` and `rootlet logs` against a real API server whose master is played by the test."""

from __future__ import annotations

import asyncio
import signal

import pytest

from supervisor.cli.streams.debugging import Debugging, join
from supervisor.client.http import AgentClient
from tests.support.api_server import (
    DEADLINE_S,
    DONE,
    Master,
    container_status,
    event_changed,
    pod_changed,
    status_of,
)
from tests.support.cli import rootlet, start


async def test_describe(master: Master) -> None:
    master.ready(
        pod_changed(1, "web", next_try={"app": "in 20s: back-off after exit code 1"}, summary="nothing to do"),
        event_changed(2, "web.1", "web", count=2),
        event_changed(3, "db.1", "db", reason="Other"),
    )
    found = await rootlet(master, "describe", "pod", "web")
    lines = found.out.splitlines()
    assert lines[0] == "Name:         web"
    assert ["Source:", "file"] in [line.split() for line in lines]
    assert "  app:  in 20s: back-off after exit code 1" in lines
    assert any(line.startswith("Waits For:") and "NextSync: " in line for line in lines)
    assert "Other" not in found.out
    assert lines[-1].endswith("Started container app")
    missing = await rootlet(master, "describe", "pod/nope")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): pods "nope" not found\n')


def write_log(master: Master, container: str, text: str) -> None:
    path = master.logs_dir / "default_web_uid-web" / container / "0.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_logs(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side")))
    lines = [f"2026-01-01T00:00:0{n}.5Z stdout F line {n}\n" for n in range(5)]
    write_log(master, "app", "".join(lines))
    found = await rootlet(master, "logs", "web", "--tail", "2", "--timestamps")
    assert found.out == "2026-01-01T00:00:03.5Z line 3\n2026-01-01T00:00:04.5Z line 4\n"
    assert found.err == 'Defaulted container "app" out of: app, side\n'
    chosen = await rootlet(master, "logs", "pod/web", "-c", "app", "--limit-bytes", "6")
    assert (chosen.out, chosen.err) == ("line 0", "")
    assert (await rootlet(master, "logs", "web", "--since=0", "--tail=-1")).out.count("line ") == len(lines)
    none = await rootlet(master, "logs", "web", "-p", "-c", "app")
    assert none.err.startswith("Error from server (BadRequest): previous terminated container")


FIRST, DEFAULTED = "the app\n", 'Defaulted container "app" out of: app, debug (ephem), setup (init)\n'


@pytest.mark.parametrize(
    ("annotation", "out", "err"),
    [
        (None, FIRST, DEFAULTED),
        ("setup", "the setup\n", ""),
        ("debug", "the debug\n", ""),
        ("nope", FIRST, f'Default container name "nope" not found in pod web\n{DEFAULTED}'),
    ],
)
async def test_whose_log_is_meant(master: Master, annotation: str | None, out: str, err: str) -> None:
    annotations = {"kubectl.kubernetes.io/default-container": annotation} if annotation else {}
    master.ready(pod_changed(1, "web", init=("setup",), ephemeral=("debug",), annotations=annotations))
    for name in ("setup", "app", "debug"):
        write_log(master, name, f"2026-01-01T00:00:00Z stdout F the {name}\n")
    found = await rootlet(master, "logs", "web")
    assert (found.code, found.out, found.err) == (0, out, err)


async def test_logs_of_all_containers(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side"), init=("setup",), ephemeral=("debug",)))
    for name in ("app", "debug", "setup"):
        write_log(master, name, f"2026-01-01T00:00:00Z stdout F 1 {name}\n2026-01-01T00:00:00Z stdout F 2 {name}\n")
    found = await rootlet(master, "logs", "web", "--all-containers", "--prefix", "--tail=1")
    assert found.out == "[pod/web/setup] 2 setup\n[pod/web/app] 2 app\n[pod/web/debug] 2 debug\n"
    # A log that cannot be read keeps nobody else's back.
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert "there is no log 0.log" in found.err
    crowd = await rootlet(master, "logs", "web", "--all-containers", "-f", "--max-log-requests=3")
    assert (crowd.code, crowd.out) == (1, "")
    assert crowd.err.startswith("error: you are attempting to follow 4 log streams, but maximum allowed")


async def test_logs_of_selected_pods(master: Master) -> None:
    master.ready(pod_changed(1, "web", labels={"app": "web"}), pod_changed(2, "db", uid="uid-db"))
    lines = [f"2026-01-01T00:00:00.{n:03}Z stdout F line {n}\n" for n in range(15)]
    write_log(master, "app", "".join(lines))
    by_label = await rootlet(master, "logs", "-l", "app=web")
    assert by_label.out == "".join(f"line {n}\n" for n in range(5, 15))
    everything = await rootlet(master, "logs", "-l", "app=web", "--tail=-1", "-c", "app", "--prefix")
    assert everything.out.splitlines()[0] == "[pod/web/app] line 0"
    pods = await rootlet(master, "logs", "--all-pods", "--tail=1", "--ignore-errors")
    assert (pods.code, pods.out) == (0, "[pod/web/app] line 14\n")
    assert pods.err.startswith("error: Error from server (NotFound): there is no log 0.log")
    none = await rootlet(master, "logs", "-l", "app=none")
    assert (none.code, none.err) == (0, "No resources found in default namespace.\n")
    wrong = await rootlet(master, "logs", "web", "-c", "zz")
    assert (wrong.code, wrong.err) == (1, "error: container zz is not valid for pod web out of: app\n")
    both = await rootlet(master, "logs", "web", "-l", "app=web")
    assert (both.code, both.err) == (1, "error: only a selector (-l) or a POD name is allowed\n")
    neither = await rootlet(master, "logs")
    assert (neither.code, neither.err.splitlines()[0]) == (
        1,
        "error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.",
    )


async def test_all_logs_are_followed_at_once(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side")))
    write_log(master, "app", "2026-01-01T00:00:00Z stdout F one\n")
    write_log(master, "side", "2026-01-01T00:00:00Z stdout F two\n")
    process = await start(master, "logs", "-f", "web", "--all-containers")
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert {await process.stdout.readline() for _ in range(2)} == {b"one\n", b"two\n"}
        master.gone(2, "web")
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


async def test_a_debugging_container_that_has_ended_shows_its_log(
    master: Master, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ended = container_status("app", ready=False, state=DONE)
    master.ready(pod_changed(1, "web", status=status_of(phase="Running", containerStatuses=[ended])))
    write_log(master, "app", "2026-01-01T00:00:00Z stdout F seen\n")
    client, wanted = AgentClient(master.socket_path), Debugging(pod="web", namespace="default")
    code = await asyncio.to_thread(join, client, master.socket_path, wanted, "web", "app")
    assert (code, capsysbinary.readouterr().out) == (0, b"seen\n")


async def test_an_interrupt_ends_what_is_followed(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "side")))
    for name in ("app", "side"):
        write_log(master, name, "2026-01-01T00:00:00Z stdout F said\n")
    process = await start(master, "logs", "-f", "web", "--all-containers")
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert [await process.stdout.readline() for _ in range(2)] == [b"said\n", b"said\n"]
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err.strip()) == (-signal.SIGINT, b"", b"")


async def test_logs_follow_until_the_end(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    write_log(master, "app", "2026-01-01T00:00:00Z stdout F one\n")
    process = await start(master, "logs", "-f", "web")
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        assert await process.stdout.readline() == b"one\n"
        master.gone(2, "web")
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
