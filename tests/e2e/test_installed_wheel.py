"""A new user's way: the wheel alone into an environment of its own, a pod that answers on a port, an upgrade, and an
uninstall after which nothing is left. No checkout, no storage and no file of anybody else is used."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from supervisor.version import VERSION
from tests.support.cli import ROOT
from tests.support.deep_trees import remove_deep
from tests.support.podman_service import IMAGE, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow, pytest.mark.timeout(1200)]

SOURCE: Final = ("supervisor", "workers", "ipc", "configs", "docs")
SOURCE_FILES: Final = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
EARLIER: Final = "0.0.9"
DEADLINE_S: Final = 600
POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: httpd
    image: %s
    imagePullPolicy: Never
    command: [sh, -c, "mkdir -p /www && echo hello > /www/index.html && exec httpd -f -p 8080 -h /www"]
    ports: [{containerPort: 8080, hostPort: %d}]
"""


class User:
    """A home, a runtime directory and an environment for Python that nobody has used."""

    def __init__(self, directory: Path) -> None:
        self.home, self.runtime = directory / "home", directory / "run"
        for path in (self.home, self.runtime):
            path.mkdir(mode=0o700)
        self.venv = self.home / "venv"
        self.environment = {
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PATH": f"{self.venv}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            **{name: os.environ[name] for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE") if name in os.environ},
        }
        self.agent: subprocess.Popen[bytes] | None = None

    def run(self, *argv: str, stdin: str | None = None, code: int = 0) -> str:
        done = subprocess.run(
            argv,
            cwd=self.home,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == code, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self) -> None:
        with (self.home / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "rootlet", "run"],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: self._answers() or self.agent is None or self.agent.poll() is not None, 60.0, 0.2)
        assert self.agent.poll() is None, (self.home / "agent.log").read_text()

    def _answers(self) -> bool:
        done = subprocess.run(["rootlet", "status"], env=self.environment, capture_output=True, check=False, timeout=60)
        return done.returncode == 0

    def ended(self) -> int:
        assert self.agent is not None
        code = self.agent.wait(60)
        self.agent = None
        return code


@pytest.fixture
def user() -> Iterator[User]:
    directory = Path(tempfile.mkdtemp(prefix="rl-", dir="/tmp"))
    made = User(directory)
    try:
        yield made
    finally:
        if made.agent is not None:
            made.agent.terminate()
            made.agent.wait(60)
        for argv in (["pod", "rm", "--all", "--force", "--time", "0"], ["unshare", "rm", "-rf", str(made.home)]):
            subprocess.run(["podman", *argv], env=made.environment, capture_output=True, timeout=120, check=False)
        remove_deep(directory)


def built(directory: Path, version: str) -> Path:
    """A wheel of this tree, with another version where one is named."""
    tree = directory / f"tree-{version}"
    tree.mkdir()
    for name in SOURCE:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in SOURCE_FILES:
        shutil.copy(ROOT / name, tree)
    file = tree / "supervisor" / "version.py"
    file.write_text(file.read_text().replace(f'"{VERSION}"', f'"{version}"'))
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(directory), str(tree)]
    subprocess.run(argv, check=True, timeout=DEADLINE_S)
    shutil.rmtree(tree)
    return directory / f"rootlet-{version}-py3-none-any.whl"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/index.html", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def test_from_nothing_to_a_pod_that_answers_and_back(user: User, tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    subprocess.run(["podman", "save", "--quiet", "--output", str(archive), IMAGE], check=True, timeout=DEADLINE_S)
    user.run(sys.executable, "-m", "venv", str(user.venv))
    user.run("pip", "install", "--quiet", str(built(tmp_path, EARLIER)))

    config = user.home / ".config" / "rootlet" / "rootlet.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(user.run("rootlet", "config", "default"))
    assert user.run("rootlet", "config", "check") == f"{config}: valid\n"
    assert f"{user.venv}/bin/rootlet run" in user.run("rootlet", "config", "unit")
    assert (user.venv / "share" / "man" / "man1" / "rootlet-get.1").exists()
    assert "complete " in user.run("rootlet", "completion", "bash")
    assert user.run("rootlet", "docs", "probes").startswith("# ")
    before = sorted(user.home.rglob("*"))
    assert f"configuration: {config}" in user.run("rootlet", "doctor")
    assert sorted(user.home.rglob("*")) == before, "asking has made nothing"

    user.run("podman", "load", "--quiet", "--input", str(archive))
    user.start()
    port = free_port()
    assert user.run("rootlet", "apply", "-f", "-", stdin=POD % (IMAGE, port)) == "pod/web created\n"
    assert user.run("rootlet", "wait", "--for=condition=Ready", "pod/web") == "pod/web condition met\n"
    wait_until(lambda: _answers(port), 30.0, 0.2)
    assert page(port) == "hello\n"
    container = user.run("podman", "ps", "--quiet", "--no-trunc")

    user.run("pip", "install", "--quiet", "--upgrade", str(built(tmp_path, VERSION)))
    assert f"v{EARLIER}" in user.run("rootlet", "status")
    assert f"this command is v{VERSION}: restart the agent" in user.run("rootlet", "status")
    user.run("rootlet", "stop")
    assert user.ended() == 0
    user.start()
    assert f"Agent Version: v{VERSION}\n" in user.run("rootlet", "version")
    assert user.run("podman", "ps", "--quiet", "--no-trunc") == container
    assert page(port) == "hello\n"

    out = user.run("rootlet", "uninstall", "--all", "--yes")
    assert "pods with their containers" in out
    assert user.ended() == 0
    user.run("pip", "uninstall", "--quiet", "--yes", "rootlet")
    assert user.run("podman", "ps", "--all", "--quiet") == ""
    assert user.run("podman", "pod", "ps", "--quiet") == ""
    left = [path for path in user.home.rglob("*rootlet*") if "containers/storage" not in str(path)]
    assert left == []
    assert list(user.runtime.rglob("*rootlet*")) == []


def _answers(port: int) -> bool:
    try:
        return bool(page(port))
    except OSError:
        return False
