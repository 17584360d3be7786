"""Commands that change applied objects, against real sources behind a real API server."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.link.messages.api_server import ObjectChanged, ObjectSummary
from supervisor.protocol.source_updates import PodOperation, PodUpdate
from tests.support.api_server import Master
from tests.support.cli import Outcome, rootlet
from tests.support.source_master import SourceMaster, real_sources

WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
    - {name: app, image: "web:1", env: [{name: MODE, value: slow}]}
    - {name: log, image: "log:1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: slow}
"""


@pytest.fixture
async def agent(master: Master, tmp_path: Path, memory: Path) -> AsyncIterator[SourceMaster]:
    """`web` and `settings` were applied."""
    async with real_sources(master, tmp_path, memory) as sources:
        assert (await rootlet(master, "apply", "-f", "-", stdin=WEB.encode())).out == (
            "pod/web created\nconfigmap/settings created\n"
        )
        yield sources


async def shown(master: Master, name: str) -> Any:
    """The object as it is kept."""
    found = await rootlet(
        master, "patch", *name.split("/"), "--type=merge", "-p", "{}", "--dry-run=server", "-o", "json"
    )
    assert found.code == 0, found.err
    return json.loads(found.out)


def told(found: Outcome) -> tuple[int, str, str]:
    return found.code, found.out, found.err


async def test_labels(master: Master, agent: SourceMaster) -> None:
    assert told(await rootlet(master, "label", "pod", "web", "tier=front", "app-")) == (0, "pod/web labeled\n", "")
    assert (await shown(master, "pod/web"))["metadata"]["labels"] == {"tier": "front"}
    again = await rootlet(master, "label", "pod/web", "tier=front")
    assert told(again) == (0, "pod/web not labeled\n", "")
    other = await rootlet(master, "label", "pod/web", "tier=back")
    assert (other.code, other.err) == (1, "error: 'tier' already has a value (front), and --overwrite is false\n")
    assert (await rootlet(master, "label", "--overwrite", "pod/web", "tier=back")).out == "pod/web labeled\n"
    gone = await rootlet(master, "label", "pod/web", "tier-", "nope-")
    assert gone.out == 'label "nope" not found.\npod/web unlabeled\n'
    assert (await rootlet(master, "label", "pod/web", "a=b", "--list")).out == "a=b\n"


async def test_a_dry_run_changes_nothing(master: Master, agent: SourceMaster) -> None:
    tried = await rootlet(master, "label", "pod/web", "tier=front", "--dry-run=server", "-o", "yaml")
    assert yaml.safe_load(tried.out)["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert (
        await rootlet(master, "annotate", "pod/web", "a=b", "--dry-run=client")
    ).out == "pod/web annotated (dry run)\n"
    metadata = (await shown(master, "pod/web"))["metadata"]
    assert metadata["labels"] == {"app": "web"}
    assert "a" not in metadata.get("annotations", {})


async def test_each_type_of_patch(master: Master, agent: SourceMaster) -> None:
    strategic = '{"spec": {"containers": [{"name": "app", "image": "web:2"}]}}'
    assert (await rootlet(master, "patch", "pod", "web", "-p", strategic)).out == "pod/web patched\n"
    assert (await rootlet(master, "patch", "pod", "web", "-p", strategic)).out == "pod/web patched (no change)\n"
    operations = '[{"op": "remove", "path": "/metadata/labels/app"}]'
    assert (await rootlet(master, "patch", "po/web", "--type=json", "-p", operations)).out == "pod/web patched\n"
    merge = await rootlet(master, "patch", "cm/settings", "--type", "merge", "-p", "data: {mode: fast, more: x}")
    assert merge.out == "configmap/settings patched\n"
    web = await shown(master, "pod/web")
    assert [(found["name"], found["image"]) for found in web["spec"]["containers"]] == [
        ("app", "web:2"),
        ("log", "log:1"),
    ]
    assert "labels" not in web["metadata"]
    assert (await shown(master, "cm/settings"))["data"] == {"mode": "fast", "more": "x"}


async def test_a_patch_that_is_refused(master: Master, agent: SourceMaster) -> None:
    unknown = await rootlet(master, "patch", "pod", "web", "-p", '{"spec": {"nope": 1}}')
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.startswith('The Pod "web" is invalid: spec.nope: ')
    renamed = await rootlet(master, "patch", "pod", "web", "-p", '{"metadata": {"name": "other"}}')
    assert 'metadata.name: Invalid value: "other": field is immutable' in renamed.err
    failed = await rootlet(master, "patch", "pod", "web", "--type=json", "-p", '[{"op": "remove", "path": "/nope"}]')
    assert failed.err.startswith('Error from server (BadRequest): pods "web": ')
    absent = await rootlet(master, "patch", "pod", "nope", "-p", "{}")
    assert told(absent) == (1, "", 'Error from server (NotFound): pods "nope" not found\n')


async def test_what_a_file_states_is_changed_there(master: Master, agent: SourceMaster) -> None:
    (agent.manifests / "db.yaml").write_text(WEB.replace("web", "db").replace("settings", "more"))
    async with asyncio.timeout(30):
        await agent.stated("db")
    refused = await rootlet(master, "label", "pod/db", "a=b")
    assert told(refused) == (
        1,
        "",
        'Error from server (Forbidden): pods "db" comes from the manifest db.yaml (source file): change it there\n',
    )


async def test_images_variables_and_resources(master: Master, agent: SourceMaster) -> None:
    assert (await rootlet(master, "set", "image", "pod/web", "app=web:3")).out == "pod/web image updated\n"
    wrong = await rootlet(master, "set", "image", "pod/web", "nope=web:3")
    assert told(wrong) == (1, "", 'error: unable to find container named "nope"\n')
    assert (
        await rootlet(master, "set", "env", "pod/web", "-c", "app", "MODE-", "LEVEL=2")
    ).out == "pod/web env updated\n"
    limits = await rootlet(master, "set", "resources", "pod/web", "-c", "log", "--limits=cpu=200m,memory=64Mi")
    assert limits.out == "pod/web resource requirements updated\n"
    app, log = (await shown(master, "pod/web"))["spec"]["containers"]
    assert (app["image"], app["env"]) == ("web:3", [{"name": "LEVEL", "value": "2"}])
    assert log["resources"]["limits"] == {"cpu": "200m", "memory": "64Mi"}
    listed = await rootlet(master, "set", "env", "pod/web", "--list")
    assert listed.out == "# pod/web, container app\nLEVEL=2\n# pod/web, container log\n"


async def test_apply_keeps_what_commands_have_changed(master: Master, agent: SourceMaster) -> None:
    """As kubectl's three-way merge: what the manifest states counts, what it never stated stays."""
    await rootlet(master, "label", "pod/web", "tier=front")
    await rootlet(master, "set", "image", "pod/web", "app=web:2")
    assert (await rootlet(master, "apply", "-f", "-", stdin=WEB.encode())).out == (
        "pod/web configured\nconfigmap/settings unchanged\n"
    )
    web = await shown(master, "pod/web")
    assert web["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert web["spec"]["containers"][0]["image"] == "web:1"
    other = WEB.replace("labels: {app: web}", "labels: {kind: shop}")
    await rootlet(master, "apply", "-f", "-", stdin=other.encode())
    assert (await shown(master, "pod/web"))["metadata"]["labels"] == {"kind": "shop", "tier": "front"}
    replaced = await rootlet(master, "replace", "-f", "-", stdin=WEB.encode())
    assert replaced.out == "pod/web replaced\nconfigmap/settings replaced\n"
    assert (await shown(master, "pod/web"))["metadata"]["labels"] == {"app": "web"}


TWICE = WEB.replace("{name: MODE, value: slow}", "{name: MODE, value: slow}, {name: MODE, value: fast}")


async def test_what_is_applied_is_what_one_gets(master: Master, agent: SourceMaster) -> None:
    """Also where a variable stands twice, and whatever a command has changed since; `diff` says so."""
    await rootlet(master, "apply", "-f", "-", stdin=TWICE.encode())
    await rootlet(master, "label", "pod/web", "tier=front")
    compared = await rootlet(master, "diff", "-f", "-", stdin=WEB.encode())
    assert (compared.code, [line for line in compared.out.splitlines() if "value: fast" in line]) == (
        1,
        ["-      value: fast"],
    )
    assert (await rootlet(master, "apply", "-f", "-", stdin=WEB.encode())).out.startswith("pod/web configured\n")
    assert told(await rootlet(master, "diff", "-f", "-", stdin=WEB.encode())) == (0, "", "")
    web = await shown(master, "pod/web")
    assert web["spec"]["containers"][0]["env"] == [{"name": "MODE", "value": "slow"}]
    assert web["metadata"]["labels"] == {"app": "web", "tier": "front"}


async def test_a_variable_that_stands_twice_is_set_once(master: Master, agent: SourceMaster) -> None:
    more = TWICE.replace("[{name: MODE", "[{name: FIRST, value: x}, {name: MODE").replace("fast}]", "fast}, {name: Z}]")
    await rootlet(master, "apply", "-f", "-", stdin=more.encode())
    await rootlet(master, "set", "env", "pod/web", "-c", "app", "MODE=new", "NEW=$(MODE)")
    listed = await rootlet(master, "set", "env", "pod/web", "-c", "app", "--list")
    assert listed.out == "# pod/web, container app\nFIRST=x\nMODE=new\nZ=\nNEW=$(MODE)\n"


async def test_a_quantity_in_other_words_is_no_difference(master: Master, agent: SourceMaster) -> None:
    stated = WEB.replace('"log:1"', '"log:1", resources: {limits: {cpu: 1000m, memory: 1024Mi}}')
    other = stated.replace("1000m", "1").replace("1024Mi", "1073741824")
    await rootlet(master, "apply", "-f", "-", stdin=stated.encode())
    same = stated.replace("1000m", "1").replace("1024Mi", "1Gi")
    assert told(await rootlet(master, "diff", "-f", "-", stdin=same.encode())) == (0, "", "")
    assert (await rootlet(master, "apply", "-f", "-", stdin=same.encode())).out.startswith("pod/web unchanged\n")
    assert (await shown(master, "pod/web"))["spec"]["containers"][1]["resources"]["limits"] == {
        "cpu": "1",
        "memory": "1Gi",
    }
    assert (await rootlet(master, "apply", "-f", "-", stdin=other.encode())).out.startswith("pod/web configured\n")


async def test_edit_opens_what_was_refused_again(
    master: Master, agent: SourceMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        f'n=$(ls {tmp_path}/seen.* 2>/dev/null | wc -l); cp "$1" {tmp_path}/seen.$n\n'
        'if [ $n = 1 ]; then exec sed -i "/nope: 1/d" "$1"; fi\n'
        'exec sed -i "s/web:1/web:2/; s/^spec:/spec:\\n  nope: 1/" "$1"\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))
    done = await rootlet(master, "edit", "pod", "web")
    assert (done.code, done.out) == (0, "pod/web edited\n")
    second = (tmp_path / "seen.1").read_text()
    assert '# pod/web was not valid:\n# * The Pod "web" is invalid: spec.nope: ' in second
    assert (await shown(master, "pod/web"))["spec"]["containers"][0]["image"] == "web:2"
    monkeypatch.setenv("KUBE_EDITOR", "true")
    assert (await rootlet(master, "edit", "pod", "web")).out == "Edit cancelled, no changes made.\n"
    monkeypatch.setenv("KUBE_EDITOR", "no-such-editor --wait")
    missing = "error: unable to launch the editor 'no-such-editor --wait': No such file or directory\n"
    assert await rootlet(master, "edit", "pod", "web") == Outcome(1, "", missing)


async def test_create_gives_a_name_that_begins_as_it_should(master: Master, agent: SourceMaster) -> None:
    """Each time another one; of a list's items too. apply takes none, as kubectl's."""
    nameless = WEB.partition("---")[0].replace("name: web", "generateName: job-", 1)
    assert "generateName" in nameless
    outs = [await rootlet(master, "create", "-f", "-", stdin=nameless.encode()) for _ in range(2)]
    assert all(re.fullmatch(r"pod/job-[bcdfghjklmnpqrstvwxz2456789]{5} created\n", each.out) for each in outs), outs
    assert outs[0].out != outs[1].out
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(nameless)] * 2})
    listed = await rootlet(master, "create", "-f", "-", stdin=items.encode())
    assert len(set(listed.out.splitlines())) == 2, listed
    applied = await rootlet(master, "apply", "-f", "-", stdin=nameless.encode())
    assert (applied.code, "metadata.name" in applied.err) == (1, True)


async def test_create(master: Master, agent: SourceMaster, tmp_path: Path) -> None:
    again = await rootlet(master, "create", "-f", "-", stdin=WEB.encode())
    assert again.code == 1
    assert 'document 1: pods "web" already exists\n' in again.err
    assert 'document 2: configmaps "settings" already exists\n' in again.err
    (tmp_path / "app.conf").write_bytes(b"\xff\xfe")
    (tmp_path / "env").write_text("# of the shop\nA=1\n\nB=x=y\n")
    made = await rootlet(
        master, "create", "cm", "app", "--from-literal=mode=fast", f"--from-file={tmp_path}/app.conf", "-o", "json"
    )
    assert (json.loads(made.out)["data"], json.loads(made.out)["binaryData"]) == (
        {"mode": "fast"},
        {"app.conf": "//4="},
    )
    dry = await rootlet(
        master,
        "create",
        "secret",
        "generic",
        "login",
        f"--from-env-file={tmp_path}/env",
        "--dry-run=client",
        "-o",
        "yaml",
    )
    values = yaml.safe_load(dry.out)["data"]
    assert {key: base64.b64decode(value) for key, value in values.items()} == {"A": b"1", "B": b"x=y"}
    stored = await rootlet(
        master, "create", "secret", "generic", "login", "--from-literal=password=hidden", "-o", "yaml"
    )
    assert "hidden" not in stored.out
    assert base64.b64encode(b"hidden").decode() not in stored.out
    assert yaml.safe_load(stored.out)["kind"] == "SecretSummary"


async def test_a_namespace_is_for_objects_that_state_none(master: Master, agent: SourceMaster) -> None:
    done = await rootlet(master, "apply", "-n", "shop", "-f", "-", "-o", "name", stdin=WEB.encode())
    assert told(done) == (0, "pod/web\nconfigmap/settings\n", "")
    assert (await rootlet(master, "label", "-n", "shop", "pod/web", "a=b")).out == "pod/web labeled\n"
    other = WEB.replace("{name: web,", "{name: web, namespace: a,")
    refused = await rootlet(master, "apply", "-n", "b", "-f", "-", stdin=other.encode())
    assert 'the namespace from the provided object "a" does not match the namespace "b"' in refused.err


async def test_warnings_and_all_errors_are_told_at_once(master: Master, agent: SourceMaster) -> None:
    warned = await rootlet(
        master, "apply", "-f", "-", stdin=WEB.replace("spec:\n", "spec:\n  schedulerName: mine\n").encode()
    )
    assert warned.err.startswith("Warning: ")
    assert "spec.schedulerName" in warned.err
    wrong = WEB.replace("image:", "imag:").replace("data:", "dat:")
    found = await rootlet(master, "apply", "-f", "-", stdin=wrong.encode())
    assert found.code == 1
    assert [line.split(": ")[1:3] for line in found.err.splitlines()[1:-1]] != []
    assert all(word in found.err for word in ("spec.containers[0].imag", "spec.containers[1].imag", "document 2: dat"))


async def test_diff_exits_as_kubectl_does(master: Master, agent: SourceMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(await rootlet(master, "diff", "-f", "-", stdin=WEB.encode())) == (0, "", "")
    other = await rootlet(master, "diff", "-f", "-", stdin=WEB.replace("web:1", "web:2").encode())
    assert other.code == 1
    assert "-  - env:" not in other.out
    assert [line.strip() for line in other.out.splitlines() if line[:1] in "+-" and "image" in line] == [
        "-    image: web:1",
        "+    image: web:2",
    ]
    assert (await shown(master, "pod/web"))["spec"]["containers"][0]["image"] == "web:1"
    wrong = await rootlet(master, "diff", "-f", "-", stdin=b"kind: Nope")
    assert wrong.code == 2
    monkeypatch.setenv("KUBECTL_EXTERNAL_DIFF", "ls -1 ;rm")
    listed = await rootlet(master, "diff", "-f", "-", stdin=WEB.encode())
    assert listed.out.count("v1.Pod.default.web\n") == 2


@pytest.mark.parametrize(
    "words", [(), ("-f", "-", "--nosuch"), ("-f",), ("-f", "no-such-file.yaml"), ("-f", "-", "-k", "."), ("web",)]
)
async def test_a_wrong_use_of_diff_is_no_difference(master: Master, words: tuple[str, ...]) -> None:
    assert (await rootlet(master, "diff", *words)).code == 2


async def test_a_directory_that_diff_may_not_read_is_no_difference(master: Master, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    found = await rootlet(master, "diff", "-f", str(tmp_path / "closed"))
    assert (found.code, found.err.startswith("error: ")) == (2, True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of which a program called kustomize makes WEB."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "kustomize").write_text('#!/bin/sh\n[ "$1 $2" = "build --" ] && exec cat "$3/made.yaml"\n')
    (programs / "kustomize").chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    made = tmp_path / "shop"
    made.mkdir()
    (made / "made.yaml").write_text(WEB)
    return made


async def test_every_command_on_manifests_takes_a_kustomization(
    master: Master, agent: SourceMaster, shop: Path
) -> None:
    names = "pod/web\nconfigmap/settings\n"
    assert told(await rootlet(master, "diff", "-k", str(shop))) == (0, "", "")
    assert (await rootlet(master, "replace", "-k", str(shop), "-o=name")).out == names
    assert (
        await rootlet(master, "label", "-k", str(shop), "a=b")
    ).out == "pod/web labeled\nconfigmap/settings labeled\n"
    assert (await rootlet(master, "annotate", "-k", str(shop), "a=b", "-o=name")).out == names
    assert (await rootlet(master, "set", "env", "-k", str(shop), "A=b")).code == 1  # the ConfigMap has no containers
    assert "already exists" in (await rootlet(master, "create", "-k", str(shop))).err
    assert (await rootlet(master, "apply", "-k", str(shop), "-o=name")).out == names
    for command in ("get", "describe"):
        assert '"settings" not found' in (await rootlet(master, command, "-k", str(shop))).err  # in what was fed
    assert "only pods are restarted" in (await rootlet(master, "rollout", "restart", "-k", str(shop))).err
    assert '"web" deleted' in (await rootlet(master, "delete", "-k", str(shop))).out


@pytest.mark.parametrize("command", ["apply", "create", "replace", "delete", "get", "describe", "diff"])
async def test_what_no_kustomization_can_be_made_of_is_refused_in_words(
    master: Master, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    both = await rootlet(master, command, "-k", ".", "-f", "web.yaml")
    assert "only one of -f or -k can be specified" in both.err
    monkeypatch.setenv("PATH", "/nowhere")
    without = await rootlet(master, command, "-k", ".")
    assert "-k needs the program kustomize (or kubectl, which has it built in) on PATH" in without.err
    assert (both.code, without.code) == ((2, 2) if command == "diff" else (1, 1))


async def test_a_restarted_pod_goes_and_comes(master: Master, agent: SourceMaster) -> None:
    done = await rootlet(master, "restart", "pod", "web", "--no-wait", "--grace-period=3")
    assert told(done) == (0, "pod/web restarted\n", "")
    gone, back = agent.changes[-1].updates
    assert isinstance(gone, PodUpdate)
    assert isinstance(back, PodUpdate)
    assert (gone.op, gone.pods[0].metadata.deletion_grace_period_seconds) == (PodOperation.REMOVE, 3)
    assert (back.op, back.pods[0].metadata.name) == (PodOperation.ADD, "web")
    assert back.pods[0].metadata.uid == gone.pods[0].metadata.uid
    absent = await rootlet(master, "rollout", "restart", "pod/nope")
    assert told(absent) == (1, "", 'Error from server (NotFound): pods "nope" not found\n')
    wrong = await rootlet(master, "rollout", "restart", "cm/settings")
    assert wrong.code == 1
    assert "only pods are restarted" in wrong.err


async def test_prune_takes_away_what_is_stated_no_more(master: Master, agent: SourceMaster) -> None:
    pod, settings = WEB.split("---\n")
    labelled = settings.replace("{name: settings}", "{name: settings, labels: {app: web}}")
    await rootlet(master, "apply", "-f", "-", stdin=f"{pod}---\n{labelled}".encode())
    refused = await rootlet(master, "apply", "--prune", "-f", "-", stdin=pod.encode())
    assert refused.code != 0
    assert "without explicitly passing --all" in refused.err
    metadata = ObjectMeta(name="settings", namespace="default", labels={"app": "web"})
    sizes = {"mode": 4}
    summary = ObjectSummary(
        kind=ObjectKind.CONFIG_MAP, metadata=metadata, sizes=sizes, keys=1, size_bytes=4, source="apply", file="a"
    )
    master.feed(ObjectChanged(resource_version=9, summary=summary))
    tried = await rootlet(
        master, "apply", "--prune", "-l", "app=web", "-f", "-", "--dry-run=server", stdin=pod.encode()
    )
    assert tried.out == "pod/web unchanged (server dry run)\nconfigmap/settings pruned (server dry run)\n"
    done = await rootlet(master, "apply", "--prune", "-l", "app=web", "-f", "-", stdin=pod.encode())
    assert done.out == "pod/web unchanged\nconfigmap/settings pruned\n"


async def test_kinds_and_fields_are_explained(master: Master) -> None:
    page = await rootlet(master, "explain", "po.spec.containers.image")
    assert page.out.startswith("KIND:       Pod\nVERSION:    v1\n\nFIELD: image <string>\n")
    assert told(await rootlet(master, "explain", "pod.spec.nope")) == (1, "", 'error: field "nope" does not exist\n')
    names = await rootlet(master, "api-resources", "-o", "name", "--namespaced=false", "--api-group=scheduling.k8s.io")
    assert names.out == "priorityclasses.scheduling.k8s.io\n"
    everything = await rootlet(master, "explain", "pods", "--recursive")
    assert "            preStop\t<LifecycleHandler>\n" not in everything.err
    assert "preStop\t<" in everything.out
