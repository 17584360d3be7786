"""The pages whose commands are run."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Final

from supervisor.config.socket_path import admin_socket_path
from tests.docs.console import Shell, perform, rewritten
from tests.docs.fresh_user import FreshUser, fresh_user

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    "docs/tutorial.md",
    "README.md",
    "docs/tour.md",
    "docs/debugging.md",
    "docs/logging.md",
    "docs/shutdown.md",
)
QUICK: Final = ("docs/logging.md",)
"""Pages that are run always; the others are among the slow tests."""
INSTANCES: Final = ("shop", "demo")
"""The agents of all pages."""
NODE: Final = "vm"
"""The host of all pages."""
STOP_DEADLINE_S: Final = 60.0
_PRELUDE: Final = f"""\
export ROOTLET_INSTANCE={INSTANCES[0]}
agent() {{
  mkdir -p pods
  printf '%s\\n' 'apiVersion: rootlet.dev/v1alpha1' 'kind: RootletConfiguration' 'instanceName: {INSTANCES[0]}' \\
    'staticPodPath: pods' 'evictionHard: {{}}' >rootlet.yaml
  rootlet run --config rootlet.yaml 2>agent.log &
  until rootlet get pods >/dev/null 2>&1; do sleep 0.1; done
}}
"""
"""Names that unseen commands may use."""


def renewed(page: str) -> str:
    """The page as a fresh user would see it today."""
    with fresh_user() as user:
        shell = Shell(user.directory, {**user.environment, "CHECKOUT": str(ROOT)})
        try:
            shell.run(_PRELUDE)
            done = perform(page, shell, user.directory)
            return rewritten(page, [each._replace(output=_shown(each.output, user)) for each in done])
        finally:
            _stop_agents(user)
            shell.close()


def _shown(output: str, user: FreshUser) -> str:
    """With the usual directory and the name of the pages' host."""
    usual = output.replace(user.environment["XDG_STATE_HOME"], "~/.local/state")
    return usual.replace(platform.node().lower(), NODE)


def _stop_agents(user: FreshUser) -> None:
    """Stop the agents that a page has left running; a page that failed, too."""
    for instance in INSTANCES:
        if admin_socket_path(instance).exists():
            stop = ["rootlet", "--instance", instance, "stop", "--pods"]
            subprocess.run(stop, env=user.environment, check=False, capture_output=True, timeout=STOP_DEADLINE_S)
