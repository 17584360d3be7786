"""ConfigMaps and Secrets beside pods: shown by name and size, kept where they may be, and never told to anybody."""

from __future__ import annotations

import base64
import json
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PLANTED = "hunter2-planted-7f3a91"
"""The value of every Secret of these tests, or a part of it."""
ENCODED = base64.b64encode(PLANTED.encode()).decode()
FORMS = (PLANTED.encode(), ENCODED.encode())

BROKEN = {
    "syntax": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  a: b: {PLANTED}\n",
    "quote": f'apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: "{PLANTED}}}\n',
    "alias": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: *{PLANTED}}}\n",
    "tag": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: !{PLANTED} x}}\n",
    "handle": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: !{PLANTED}!x}}\n",
    "base64": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata: {{a: {PLANTED}}}\n",
    "list": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: [{PLANTED}]}}\n",
    "text": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {PLANTED}\n",
    "pod": f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nstringData: {{a: {PLANTED}}}\n",
    "json": f'{{"apiVersion": "v1", "kind": "Secret", "stringData": {{"a": "{PLANTED}" "b"}}}}',
    "docker": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\n"
    f"stringData: {{.dockerconfigjson: '{PLANTED}'}}\n",
    "nothing": PLANTED,
}
"""Manifests with a Secret that cannot be read, each in another way."""


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def secret(name: str, **fields: Any) -> dict[str, Any]:
    fields = fields or {"stringData": {"password": PLANTED}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}


def names(agent: Agent, resource: str) -> set[str]:
    return {item["metadata"]["name"] for item in agent.get(f"/rootlet/v1/{resource}")["items"]}


def until(agent: Agent, resource: str, *wanted: str) -> None:
    agent.until(lambda: set(wanted) <= names(agent, resource), f"{resource} {wanted} are there")


def holds_planted(data: bytes) -> bool:
    return any(form in data for form in FORMS)


def files_below(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def test_get_and_describe_show_names_and_sizes(agent: Agent) -> None:
    agent.write(
        config_map("shown", data={"a": "x" * 10, "b": PLANTED}, binaryData={"c": base64.b64encode(b"yy").decode()}),
        secret("login", type="kubernetes.io/basic-auth", stringData={"username": "me", "password": PLANTED}),
    )
    until(agent, "configmaps", "shown")
    until(agent, "secrets", "login")
    rows = [line.split() for line in agent.cli("get", "cm", "shown").out.splitlines()]
    assert rows[0] == ["NAME", "DATA", "AGE"]
    assert rows[1][:2] == ["shown", "3"]
    rows = [line.split() for line in agent.cli("get", "secrets").out.splitlines()]
    assert rows[0] == ["NAME", "TYPE", "DATA", "AGE"]
    assert ["login", "kubernetes.io/basic-auth", "2"] in [row[:3] for row in rows]
    assert agent.cli("get", "secret/login", "-o", "name").out == "secret/login\n"
    document = json.loads(agent.cli("get", "secret", "login", "-o", "json").out)
    assert document["kind"] == "SecretSummary"
    assert document["dataSizes"] == {"password": len(PLANTED), "username": 2}
    described = agent.cli("describe", "cm", "shown").out
    assert "c:  2 bytes" in described
    outputs = [
        agent.cli(*command).out
        for resource, name, forms in (
            ("secret", "login", ("wide", "json", "yaml", "name")),
            ("configmap", "shown", ("wide", "name")),
        )
        for command in (
            ("describe", resource, name),
            ("describe", f"{resource}/{name}"),
            *(("get", resource, name, "-o", form) for form in forms),
            *(("get", resource, "-A", "-o", form) for form in forms),
        )
    ]
    assert all(name in output for output, name in zip(outputs, ["login"] * 10 + ["shown"] * 6, strict=True))
    assert not any(holds_planted(output.encode()) for output in outputs)
    missing = agent.cli("get", "secret", "nobody")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): secrets "nobody" not found\n')
    assert agent.cli("delete", "cm", "shown").err == (
        'Error from server (Forbidden): configmaps "shown" comes from the manifest shown.yaml (source file): '
        "remove it there\n"
    )
    shown = agent.cli("get", "cm", "shown", "-o", "jsonpath={.kind} {.data.b} {.binaryData.c}")
    assert shown.out == f"ConfigMap {PLANTED} {base64.b64encode(b'yy').decode()}"
    told = agent.cli("get", "secret", "login", "-o", "jsonpath={.data.username}", "--show-values")
    assert base64.b64decode(told.out) == b"me"


def ages(agent: Agent) -> dict[str, str]:
    """When the node and the objects of files and of `rootlet apply` were made, by their names."""
    words = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.creationTimestamp}{'\\n'}{end}"
    lines = [agent.cli("get", kinds, "-o", words).out for kinds in ("nodes", "cm", "secrets")]
    return dict(line.split(" ") for line in "".join(lines).splitlines())


def test_apply_and_delete(agent: Agent) -> None:
    both = "\n---\n".join(map(json.dumps, (config_map("kept", data={"a": "b"}), secret("in-memory"))))
    assert agent.cli("apply", "-f", "-", stdin=both) == (
        0,
        "configmap/kept created\nsecret/in-memory created\n",
        "Warning: secret/in-memory is kept in memory only, and is gone when the host reboots: appliedSecrets: "
        "Encrypted keeps it on disk\n",
    )
    assert agent.cli("apply", "-f", "-", stdin=both).out == "configmap/kept unchanged\nsecret/in-memory unchanged\n"
    before = ages(agent)
    assert {"ConfigMap/kept", "ConfigMap/shown", "SecretSummary/in-memory"} < before.keys()
    agent.restart()
    until(agent, "configmaps", "kept")
    until(agent, "secrets", "in-memory")
    assert ages(agent) == before
    assert not any(holds_planted(path.read_bytes()) for path in files_below(agent.state))
    (kept,) = (path for path in files_below(agent.memory) if holds_planted(path.read_bytes()))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in (kept.parent, agent.memory)} == {0o700}
    gone = 'configmap "kept" deleted from default namespace\nsecret "in-memory" deleted from default namespace\n'
    assert agent.cli("delete", "-f", "-", stdin=both).out == gone
    assert not {"kept", "in-memory"} & (names(agent, "configmaps") | names(agent, "secrets"))
    assert not any(holds_planted(path.read_bytes()) for path in files_below(agent.memory))
    assert agent.cli("delete", "secret", "in-memory").code == 1
    assert agent.cli("delete", "secret", "in-memory", "--ignore-not-found").code == 0


def test_an_immutable_object_stays_as_it_was(agent: Agent) -> None:
    first = config_map("fixed", data={"a": "old"}, immutable=True)
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(first)).code == 0
    changed = agent.cli("apply", "-f", "-", stdin=json.dumps({**first, "data": {"a": "newer"}}))
    assert changed.code == 1
    assert "document 1: data: ConfigMap default/fixed: Forbidden: field is immutable" in changed.err
    of_a_file = secret("fixed-too", stringData={"a": PLANTED}, immutable=True)
    agent.write(of_a_file)
    until(agent, "secrets", "fixed-too")
    agent.write({**of_a_file, "stringData": {"a": PLANTED * 2}})
    told = "fixed-too.yaml: document 1: data: Secret default/fixed-too stays as it was: Forbidden: field is immutable"
    agent.until(lambda: told in agent.log_text(), "the change is refused")
    shown = agent.get("/rootlet/v1/namespaces/default/secrets/fixed-too")
    assert shown["sizeBytes"] == len(PLANTED)


def test_nobody_is_told_a_value(agent: Agent) -> None:
    """Not even where the manifest is broken, and nobody knows what it is about."""
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(secret("planted"))).code == 0
    answers = []
    for name, text in BROKEN.items():
        agent.write_file(f"broken-{name}.yaml", text)
        done = agent.cli("apply", "-f", "-", stdin=text)
        assert done.code == 1, name
        answers += [done.out, done.err]
    answers += [agent.cli("delete", "-f", "-", stdin=BROKEN[name]).err for name in ("syntax", "alias", "json")]
    agent.until(
        lambda: all(f"broken-{name}.yaml: " in agent.log_text() for name in BROKEN), "all broken files are told"
    )
    agent.run(pod("beside", container(env=[{"name": "PLAIN", "value": "x"}]), imagePullSecrets=[{"name": "planted"}]))
    paths = ("/api/v1/pods", "/api/v1/events", "/rootlet/v1/secrets", "/rootlet/v1/configmaps", "/rootlet/v1/workers")
    answers += [json.dumps(agent.get(path)) for path in paths]
    answers += [agent.describe("beside"), agent.log_text()]
    assert [answer for answer in answers if holds_planted(answer.encode())] == []
    assert [path for path in files_below(agent.state) if holds_planted(path.read_bytes())] == []
    titles = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not any(holds_planted(title.encode()) for title in titles)
    assert not any(holds_planted(path.read_bytes()) for path in files_below(agent.directory / "logs"))
    for process in agent.marked_processes():
        assert not holds_planted(_environment(process))
    for role, pid in agent.processes().items():
        assert role in ("zygote", "podman") or psutil.Process(pid).rlimit(psutil.RLIMIT_CORE)[0] == 0, role


def _environment(process: psutil.Process) -> bytes:
    try:
        return "\n".join(process.environ().values()).encode(errors="surrogateescape")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return b""


def test_without_memory_secrets_are_refused_in_words(new_agent: Any) -> None:
    """And all else goes on."""
    agent = new_agent()
    agent.configure({"memoryDir": str(agent.directory / "on-disk")})
    if subprocess.check_output(["stat", "-f", "-c", "%T", agent.directory], text=True).strip() in ("tmpfs", "ramfs"):
        pytest.skip("temporary files are in memory here")
    agent.start()
    assert "is not in memory, but on " in agent.log_text()
    refused = agent.cli("apply", "-f", "-", stdin=json.dumps(secret("nowhere")))
    assert refused.code == 1
    assert "Secrets cannot be kept: " in refused.err
    assert agent.cli("apply", "-f", "-", stdin=json.dumps(config_map("somewhere"))).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["Memory", "Encrypted"])
def test_applied_secrets_after_a_reboot(new_agent: Any, kept: str) -> None:
    """Secrets are there and their pod runs, or an event of the node names what is lost."""
    agent = new_agent()
    agent.configure({"appliedSecrets": kept})
    agent.start()
    env = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "shop", "key": "password"}}}]
    both = "\n---\n".join(map(json.dumps, (secret("shop"), pod("till", container(env=env)))))
    applied = agent.cli("apply", "-f", "-", stdin=both)
    assert (applied.code, "shop is kept in memory only" in applied.err) == (0, kept == "Memory")
    agent.until_ready(["till"])
    assert not any(holds_planted(path.read_bytes()) for path in files_below(agent.state))
    agent.stop()
    agent.eye.remove_everything()
    shutil.rmtree(agent.memory)
    agent.start()
    lost = [event for event in agent.events() if event["reason"] == "AppliedSecretsLost"]
    if kept == "Encrypted":
        agent.until_ready(["till"])
        assert lost == []
        assert agent.cli("exec", "till", "--", "sh", "-c", "echo $PASSWORD").out == f"{PLANTED}\n"
    else:
        (event,) = lost
        assert event["message"].endswith("as after a reboot: default/shop: apply them again")
        assert names(agent, "secrets") == set()
