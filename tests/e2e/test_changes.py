"""Commands that change applied objects, on real Podman."""

from __future__ import annotations

import functools
import http.server
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, Json, is_ready, restart_count
from tests.e2e.manifests import STAY, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

TARGET = "exec sleep 4243"


def test_a_pod_is_changed_while_it_runs_and_restarted(agent: Agent) -> None:
    web = pod("changed", container(script=TARGET), labels={"app": "a"}, terminationGracePeriodSeconds=1)
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(web)).code == 0
    agent.until_ready(["changed"])
    before = agent.eye.pod_table("changed")

    # Metadata concerns no container.
    assert agent.cli("label", "pod/changed", "tier=front") == (0, "pod/changed labeled\n", "")
    agent.until(lambda: agent.pods()["changed"]["metadata"]["labels"] == {"app": "a", "tier": "front"}, "the label")
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(web)).out == "pod/changed unchanged\n"
    assert agent.eye.pod_table("changed") == before

    # A variable makes one container anew.
    assert agent.cli("set", "env", "pod/changed", "A=b") == (0, "pod/changed env updated\n", "")
    agent.until(lambda: agent.cli("exec", "changed", "--", "sh", "-c", "echo $A").out == "b\n", "the variable is there")
    agent.until_ready(["changed"])

    # A debugging container joins it, and leaves it as it is.
    main = agent.eye.container("changed", "main").id
    image = agent.pods()["changed"]["spec"]["containers"][0]["image"]
    words = ("--", "sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline; echo; " + STAY)
    done = agent.cli("debug", "changed", f"--image={image}", "-c", "look", "--target=main", *words)
    assert (done.code, done.err) == (0, 'Targeting container "main".\n')
    agent.until(lambda: "sleep 4243" in agent.cli("logs", "changed", "-c", "look").out, "it sees its target")
    assert agent.eye.container("changed", "main").id == main

    # A restart is a deletion and an apply in one.
    restarted = agent.cli("restart", "pod", "changed", "--timeout=120s", "--grace-period=1")
    assert restarted.code == 0, restarted
    assert restarted.out.splitlines()[0] == "pod/changed: waiting for its containers to end"
    assert restarted.out.splitlines()[-1] == "pod/changed restarted"
    assert is_ready(agent.pods()["changed"])
    assert agent.eye.container("changed", "main").id != main
    assert agent.pods()["changed"]["metadata"]["labels"] == {"app": "a", "tier": "front"}


def test_what_is_applied_is_what_runs_and_amounts_are_texts(agent: Agent) -> None:
    """After a command has touched the pod; a variable may stand twice, and the last one counts."""

    def stated(*modes: str, cpu: object) -> str:
        variables = [{"name": "MODE", "value": mode} for mode in modes]
        main = container(script=STAY, env=variables, resources={"requests": {"cpu": cpu}})
        return json.dumps(pod("truth", main, terminationGracePeriodSeconds=1))

    assert agent.cli("apply", "-f", "-", stdin=stated("a", "b", cpu=0.01)).code == 0
    agent.until_ready(["truth"])
    assert agent.cli("exec", "truth", "--", "sh", "-c", "echo $MODE").out == "b\n"
    assert agent.cli("label", "pod/truth", "tier=front").code == 0
    assert agent.cli("diff", "-f", "-", stdin=stated("a", cpu=0.01)).code == 1
    assert agent.cli("apply", "-f", "-", stdin=stated("a", cpu=0.01)).out == "pod/truth configured\n"
    agent.until(lambda: agent.cli("exec", "truth", "--", "sh", "-c", "echo $MODE").out == "a\n", "what is applied runs")

    agent.until_ready(["truth"])
    main = agent.eye.container("truth", "main").id
    assert agent.cli("apply", "-f", "-", stdin=stated("a", cpu="0.010")).out == "pod/truth unchanged\n"
    assert agent.cli("diff", "-f", "-", stdin=stated("a", cpu="10m")) == (0, "", "")
    shown = agent.pods()["truth"]
    (status,) = shown["status"]["containerStatuses"]
    asked = (
        shown["spec"]["containers"][0]["resources"],
        status["resources"],
        {"requests": status["allocatedResources"]},
    )
    assert asked == ({"requests": {"cpu": "10m"}},) * 3
    assert agent.eye.container("truth", "main").id == main


def test_a_container_is_restarted_and_its_neighbours_go_on(agent: Agent) -> None:
    """In the order of a stop, at once, and counted; under any restart policy."""
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /shared/hook"]}}}
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    first = container("first", script=TARGET, lifecycle=hook, volumeMounts=mounts)
    other = container("other", script=TARGET, volumeMounts=mounts)
    once = container("once", script="exit 0")
    volumes = [{"name": "shared", "emptyDir": {}}]
    spec: Json = {"volumes": volumes, "initContainers": [once], "restartPolicy": "Never"}
    agent.run(pod("two", first, other, terminationGracePeriodSeconds=1, **spec))
    before = agent.eye.container("two", "first").id, agent.eye.container("two", "other").id
    done = agent.cli("restart", "container", "two", "-c", "first", "--timeout=60s")
    assert (done.code, done.err) == (0, ""), done
    assert done.out.splitlines()[-1] == "container/first of pod/two restarted"
    assert agent.eye.container("two", "first").id != before[0]
    assert agent.eye.container("two", "other").id == before[1]
    assert [restart_count(agent.pods()["two"], name) for name in ("first", "other")] == [1, 0]
    assert agent.cli("exec", "two", "-c", "other", "--", "cat", "/shared/hook").out == "stopping\n"
    assert "RestartRequested" in agent.cli("events", "--for", "pod/two").out
    refused = agent.cli("restart", "container", "two", "-c", "once")
    assert refused.code == 1
    assert refused.err == (
        'Error from server (Conflict): container "once" of pod "two" is an init container and has done its work: '
        "restart the pod, and it runs again\n"
    )
    lines = [json.loads(line) for line in (agent.state / "audit.log").read_text().splitlines()]
    assert [line["code"] for line in lines if line["path"].endswith("/containers/first/restart")] == [202]


def test_apply_takes_a_kustomization_and_a_url(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kustomize").write_text('#!/bin/sh\nexec cat "$3/made.json"\n')
    (tmp_path / "kustomize").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "made.json").write_text(json.dumps(pod("built", terminationGracePeriodSeconds=1)))
    assert agent.cli("apply", "-k", str(tmp_path)) == (0, "pod/built created\n", "")
    assert agent.cli("diff", "-k", str(tmp_path)) == (0, "", "")
    (tmp_path / "web.json").write_text(json.dumps(pod("fetched", terminationGracePeriodSeconds=1)))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert agent.cli("apply", "-f", f"{url}/web.json") == (0, "pod/fetched created\n", "")
        missing = agent.cli("apply", "-f", f"{url}/nosuch.json")
        server.shutdown()
    assert missing == (1, "", f"error: unable to read URL '{url}/nosuch.json', server reported 404 File not found\n")
    agent.until_ready(["built", "fetched"])


def test_what_is_replaced_by_force_begins_anew(agent: Agent, tmp_path: Path) -> None:
    manifest = tmp_path / "forced.json"
    forced = pod("forced", container(script=TARGET), terminationGracePeriodSeconds=1)
    manifest.write_text(json.dumps(forced))
    assert agent.cli("apply", "-f", str(manifest)).code == 0
    agent.until_ready(["forced"])
    before = agent.eye.container("forced", "main").id
    manifest.write_text(json.dumps({**forced, "spec": {**forced["spec"], "hostname": "other"}}))
    done = agent.cli("replace", "--force", "-f", str(manifest), "--timeout=60s")
    assert (done.code, done.err) == (0, ""), done
    assert done.out.splitlines()[-1] == "pod/forced replaced"
    agent.until_ready(["forced"])
    assert agent.eye.container("forced", "main").id != before
    assert agent.cli("exec", "forced", "--", "hostname").out == "other\n"


def test_a_copy_is_debugged_and_the_pod_left_alone(agent: Agent) -> None:
    agent.run(pod("broken", container(script=TARGET), labels={"app": "b"}, terminationGracePeriodSeconds=1))
    before = agent.eye.pod_table("broken")
    image = agent.pods()["broken"]["spec"]["containers"][0]["image"]
    words = (f"--image={image}", "--image-pull-policy=Never", "-c", "look", "--", "sh", "-c", STAY)
    done = agent.cli("debug", "broken", "--copy-to=copy", *words)
    assert (done.code, done.err) == (0, ""), done
    agent.until_ready(["copy"])
    copy = agent.pods()["copy"]
    assert [each["name"] for each in copy["spec"]["containers"]] == ["main", "look"]
    assert copy["metadata"].get("labels", {}) == {}
    seen = agent.cli("exec", "copy", "-c", "look", "--", "ps").out
    assert "sleep 4243" in seen
    assert agent.eye.pod_table("broken") == before


def test_who_the_agent_answers_for(agent: Agent) -> None:
    done = agent.cli("auth", "whoami", "-o", "json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["status"]["userInfo"]["uid"] == str(os.getuid())
    table = agent.cli("auth", "whoami").out.splitlines()
    assert [line.split()[0] for line in table] == ["ATTRIBUTE", "Username", "UID", "Groups"]
    elsewhere = subprocess.run(
        ["rootlet", "--socket", "/nonexistent/rootlet.sock", "auth", "whoami"], capture_output=True, check=False
    )
    assert elsewhere.returncode == 1


def test_a_file_s_pod_can_be_restarted_but_is_changed_in_its_file(agent: Agent) -> None:
    agent.run(pod("of-a-file", container(script=TARGET), terminationGracePeriodSeconds=1))
    before = agent.eye.container("of-a-file", "main").id
    refused = agent.cli("set", "env", "pod/of-a-file", "A=b")
    assert refused.code == 1
    assert "comes from the manifest of-a-file" in refused.err
    assert agent.cli("rollout", "restart", "pod/of-a-file", "--timeout=120s").code == 0
    assert agent.eye.container("of-a-file", "main").id != before


def test_files_are_copied_both_ways(agent: Agent, tmp_path: Path) -> None:
    """By Podman's storage: the image needs no tar, and large files pass in pieces."""
    agent.run(pod("copies", container(script=TARGET), terminationGracePeriodSeconds=1))
    site = tmp_path / "site"
    (site / "below").mkdir(parents=True)
    (site / "below" / "page").write_bytes(b"x" * (3 << 20))
    (site / "run").write_text("#!/bin/sh\n")
    (site / "run").chmod(0o755)
    assert agent.cli("cp", str(site), "copies:/srv") == (0, "", "")
    size = agent.cli("exec", "copies", "--", "sh", "-c", "wc -c < /srv/below/page || wc -c < /srv/site/below/page")
    assert size.out.strip() == str(3 << 20)
    assert agent.cli("cp", str(site / "run"), "default/copies:/tmp/renamed", "-c", "main").code == 0
    assert agent.cli("exec", "copies", "--", "sh", "-c", "ln -s /etc/passwd /tmp/link; test -x /tmp/renamed").code == 0
    back = tmp_path / "back"
    copied = agent.cli("cp", "copies:/tmp", str(back))
    assert (copied.code, copied.out) == (0, "")
    assert "warning: skipping symlink: 'tmp/link'" in copied.err
    assert (back / "renamed").read_text() == "#!/bin/sh\n"
    assert not (back / "link").is_symlink()
    missing = agent.cli("cp", "copies:/nope", str(back))
    assert (missing.code, missing.err) == (
        1,
        "Error from server (NotFound): /nope: no such file or directory in the container\n",
    )


def test_relative_paths_are_those_of_the_working_directory(agent: Agent, tmp_path: Path) -> None:
    """As with `kubectl cp`, whose tar begins there."""
    main = container(workingDir="/srv/work", volumeMounts=[{"name": "work", "mountPath": "/srv/work"}])
    agent.run(pod("places", main, volumes=[{"name": "work", "emptyDir": {}}], terminationGracePeriodSeconds=1))
    (tmp_path / "f").write_text("hello\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "g").write_text("below\n")
    for target in ("places:rel", "places:./sub/../rel2", "places:."):
        assert agent.cli("cp", str(tmp_path / "f"), target) == (0, "", ""), target
    assert agent.cli("cp", str(tmp_path / "d"), "places:.") == (0, "", "")
    assert agent.cli("cp", str(tmp_path / "f"), "places:..") == (0, "", "")
    listed = agent.cli("exec", "places", "--", "sh", "-c", "cat rel rel2 f d/g /srv/f; ls").out
    assert listed == "hello\nhello\nhello\nbelow\nhello\nd\nf\nrel\nrel2\n"
    for source, target, there in (
        ("places:.", "whole", "whole/d/g"),
        ("places:/srv/work", "named", "named/work/d/g"),
        ("places:d", "named", "named/d/g"),
        ("places:d/.", "new", "new/g"),
        ("places:d/..", "all", "all/d/g"),
        ("places:../f", "file", "file"),
    ):
        if target != "file" and target != "new":
            (tmp_path / target).mkdir(exist_ok=True)
        assert agent.cli("cp", source, str(tmp_path / target)) == (0, "", ""), source
        assert (tmp_path / there).is_file(), source


@pytest.mark.slow
def test_files_in_memory_and_of_the_kernel_are_copied_or_refused(agent: Agent, tmp_path: Path) -> None:
    """Nothing is lost in silence. Podman copies into each of them, and out of those that are not below /dev."""
    main = container(volumeMounts=[{"name": "quick", "mountPath": "/quick"}])
    volumes = [{"name": "quick", "emptyDir": {"medium": "Memory"}}]
    agent.run(pod("memory", main, volumes=volumes, terminationGracePeriodSeconds=1))
    (tmp_path / "f").write_text("hello\n")
    for place in ("/quick", "/dev/shm", "/run"):
        assert agent.cli("cp", str(tmp_path / "f"), f"memory:{place}/f") == (0, "", ""), place
        assert agent.cli("exec", "memory", "--", "cat", f"{place}/f").out == "hello\n", place
    assert agent.cli("exec", "memory", "--", "sh", "-c", "ln -s /dev/shm /quick/link").code == 0
    for path in ("/quick/f", "/quick/link/f", "/etc/hosts", "/etc/resolv.conf"):
        assert agent.cli("cp", f"memory:{path}", str(tmp_path / "back")) == (0, "", ""), path
        assert (tmp_path / "back").read_text() == agent.cli("exec", "memory", "--", "cat", path).out, path
    (tmp_path / "back").unlink()
    for path in ("/dev/shm/f", "/dev/shm", "/proc/version", "/sys/kernel", "/dev/null"):
        refused = agent.cli("cp", f"memory:{path}", str(tmp_path / "back"))
        assert refused.code == 1, path
        assert f"{path} was not copied: Podman copies nothing out of /dev, /proc and /sys" in refused.err
        assert not (tmp_path / "back").exists(), path
    for path in ("/proc/f", "/sys/f"):
        assert agent.cli("cp", str(tmp_path / "f"), f"memory:{path}").code == 1, path
    whole = agent.cli("cp", "memory:/", str(tmp_path / "root"))
    assert (whole.code, (tmp_path / "root" / "quick" / "f").read_text()) == (1, "hello\n")
    assert "error: /dev, /proc, /sys were not copied: " in whole.err
