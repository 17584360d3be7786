"""Environments out of ConfigMaps, Secrets, and files that an init container has left in an emptyDir."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import config_map, container, pod, secret
from tests.e2e.test_environment import TELL, literal, own, printed, told

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PASSWORD: Final = "correct horse battery staple"


def apply(agent: Agent, *documents: Json) -> None:
    done = agent.cli("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, documents)))
    assert done.code == 0, done.err


def value_from(name: str, **source: Any) -> Json:
    return {"name": name, "valueFrom": source}


def waits_with(agent: Agent, name: str, message: str) -> None:
    """The container waits for what that says."""

    def waits() -> bool:
        waiting = agent.waiting(name)
        return (waiting.get("reason"), waiting.get("message")) == ("CreateContainerConfigError", message)

    agent.until(waits, f"{name} waits: {message}")


def test_keys_of_objects(agent: Agent) -> None:
    env = [
        value_from("GREETING", configMapKeyRef={"name": "keys", "key": "greeting"}),
        value_from("PASSWORD", secretKeyRef={"name": "keys", "key": "password"}),
        value_from("NO_KEY", configMapKeyRef={"name": "keys", "key": "none", "optional": True}),
        value_from("NO_OBJECT", secretKeyRef={"name": "none", "key": "none", "optional": True}),
        literal("BOTH", "$(GREETING): $(PASSWORD) $(NO_KEY)"),
    ]
    apply(agent, config_map("keys", greeting="hello $(PASSWORD)"), secret("keys", password=PASSWORD))
    agent.run(pod("keys", container(script=TELL, env=env)))
    assert own(told(agent, "keys")) == {
        "GREETING": "hello $(PASSWORD)",
        "PASSWORD": PASSWORD,
        "BOTH": f"hello $(PASSWORD): {PASSWORD} $(NO_KEY)",
    }


def test_whole_objects(agent: Agent) -> None:
    froms = [
        {"configMapRef": {"name": "whole"}},
        {"prefix": "S_", "secretRef": {"name": "whole"}},
        {"configMapRef": {"name": "whole-too"}},
        {"secretRef": {"name": "none", "optional": True}},
    ]
    apply(
        agent,
        config_map("whole", A="first", **{"b.c-d": "dotted"}),
        config_map("whole-too", A="second", OVERRIDDEN="of a map"),
        secret("whole", A=PASSWORD),
    )
    main = container(command=["env"], envFrom=froms, env=[literal("OVERRIDDEN", "$(A) $(S_A)")])
    agent.write(pod("whole", main, restartPolicy="Never"))
    assert printed(agent, "whole") == {
        "A": "second",
        "b.c-d": "dotted",
        "S_A": PASSWORD,
        "OVERRIDDEN": f"second {PASSWORD}",
    }


def test_a_container_waits_for_what_it_refers_to(agent: Agent) -> None:
    env = [
        value_from("A", configMapKeyRef={"name": "awaited", "key": "a"}),
        value_from("B", secretKeyRef={"name": "awaited", "key": "b"}),
    ]
    agent.write(pod("waits", container(script=TELL, env=env)))
    waits_with(agent, "waits", 'configmap "awaited" not found')
    apply(agent, config_map("awaited", other="x"))
    waits_with(agent, "waits", "couldn't find key a in ConfigMap default/awaited")
    apply(agent, config_map("awaited", a="1"))
    waits_with(agent, "waits", 'secret "awaited" not found')
    apply(agent, secret("awaited", other=PASSWORD))
    waits_with(agent, "waits", "couldn't find key b in Secret default/awaited")
    apply(agent, secret("awaited", b="2"))
    agent.until_ready(["waits"])
    assert own(told(agent, "waits")) == {"A": "1", "B": "2"}
    messages = agent.messages("waits", "Failed")
    assert 'Error: configmap "awaited" not found' in messages
    assert PASSWORD not in repr(agent.events()) + agent.log_text() + agent.describe("waits")


def test_a_change_of_an_object_reaches_the_next_life_only(agent: Agent) -> None:
    froms = [{"configMapRef": {"name": "changes"}}]
    apply(agent, config_map("changes", A="old"))
    agent.run(pod("changes", container(script=TELL, envFrom=froms)))
    before = agent.eye.pod_table("changes")
    apply(agent, config_map("changes", A="new"))
    # A pod that comes later has seen the change; what ran before it goes on.
    agent.run(pod("comes-later", container(script=TELL, envFrom=froms)))
    assert told(agent, "comes-later")["A"] == "new"
    assert agent.eye.pod_table("changes") == before
    assert told(agent, "changes")["A"] == "old"


# --- files -------------------------------------------------------------------------------------------------------


def of_file(name: str, key: str, **more: Any) -> Json:
    return value_from(name, fileKeyRef={"volumeName": "left", "path": "sub/vars.env", "key": key, **more})


def with_file(name: str, lines: str, *env: Json) -> Json:
    """A pod whose init container writes these lines to a file of variables, which the other one does not see."""
    writes = container(
        "writes", f"mkdir /left/sub; cat > /left/sub/vars.env <<'EOF'\n{lines}\nEOF", volumeMounts=[MOUNT]
    )
    return pod(
        name,
        container(script=TELL, env=list(env)),
        initContainers=[writes],
        volumes=[{"name": "left", "emptyDir": {}}],
    )


MOUNT: Final = {"name": "left", "mountPath": "/left"}


def test_variables_of_a_file(agent: Agent) -> None:
    env = [
        of_file("TAKEN", "A"),
        of_file("NONE", "NONE", optional=True),
        literal("REF", "<$(TAKEN)>"),
    ]
    agent.run(with_file("of-file", "# written by hand\nA='$(REF) # no comment' # a comment\nB='b'", *env))
    assert own(told(agent, "of-file")) == {"TAKEN": "$(REF) # no comment", "REF": "<$(REF) # no comment>"}


@pytest.mark.parametrize(("name", "empty_dir"), [("of-mapped", {}), ("of-memory", {"medium": "Memory"})])
def test_variables_of_a_file_that_only_another_user_may_read(agent: Agent, name: str, empty_dir: Json) -> None:
    writes = container(
        "writes",
        "umask 077; mkdir /left/sub; echo \"A='mine'\" > /left/sub/vars.env; ln -s /sub/none /left/link",
        volumeMounts=[MOUNT],
        securityContext={"runAsUser": 1000},
    )
    linked = value_from("LINKED", fileKeyRef={"volumeName": "left", "path": "link", "key": "A", "optional": True})
    reads = container(script=TELL, env=[of_file("A", "A"), linked])
    agent.run(pod(name, reads, initContainers=[writes], volumes=[{"name": "left", "emptyDir": empty_dir}]))
    assert own(told(agent, name)) == {"A": "mine"}
    agent.remove(name)
    agent.until_gone([name])


def test_a_file_without_the_variable_or_with_nonsense(agent: Agent) -> None:
    agent.write(with_file("no-variable", "B='b'", of_file("A", "A")), with_file("nonsense", "A=b", of_file("A", "A")))
    uid = ""

    def is_known() -> bool:
        nonlocal uid
        uid = agent.pods().get("no-variable", {}).get("metadata", {}).get("uid", "")
        return bool(uid)

    agent.until(is_known, "it is known")
    file = agent.state / "pods" / uid / "volumes" / "kubernetes.io~empty-dir" / "left" / "sub" / "vars.env"
    waits_with(agent, "no-variable", f'environment variable key "A" not found in file "{file}"')
    waits_with(agent, "nonsense", "couldn't parse env file")
