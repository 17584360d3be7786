"""Pods of an instance without its agent: found in Podman by their labels, stopped and removed.

Nothing but labels says whose they are, and anybody with access to the user's Podman can write those: where the
instance's key is there, its signature must be on them, too. What is older than the key was made before there was one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from ipc.host.atomic_file import UntrustedFile
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.kubecontainer.label_key import GRACE_PERIOD_S, INSTANCE, POD_NAME, POD_NAMESPACE, LabelKey, signs_sandbox
from supervisor.cli.options import Failure
from supervisor.state.instance_lock import InstanceBusy, acquire
from supervisor.state.label_key_file import NAME, load

if TYPE_CHECKING:
    from supervisor.config.settings import Settings

PROGRAM_S: Final = 300.0
"""Deadline of a program that ends by itself, in seconds."""
AT_A_TIME: Final = 8
"""Pods that are stopped beside each other."""
DEFAULT_GRACE_S: Final = 30
"""v1's, for a label that is none."""
MAX_DIGITS: Final = 9
PAUSED: Final = "Paused"
"""Podman's word for a pod all of whose containers are."""


class InstancePod(msgspec.Struct, frozen=True, rename="pascal"):
    """A pod as `podman pod ps --format json` shows it."""

    id: str
    name: str
    created: datetime
    labels: Mapping[str, str] | None = None
    status: str = ""

    @property
    def title(self) -> str:
        """Name of the pod as its manifest has it."""
        labels = self.labels or {}
        return f"{labels.get(POD_NAMESPACE, '')}/{labels.get(POD_NAME, '') or self.name}"

    def grace_s(self, most_s: float) -> int:
        """Grace period of its label in seconds, at most that."""
        text = (self.labels or {}).get(GRACE_PERIOD_S, "")
        is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
        return min(int(text) if is_number else DEFAULT_GRACE_S, int(most_s))


class InstancePods(msgspec.Struct, frozen=True):
    """Pods with the label of an instance."""

    ours: tuple[InstancePod, ...] = ()
    strangers: tuple[InstancePod, ...] = ()
    """Nothing proves that the instance has made them."""


@contextlib.contextmanager
def no_agent(settings: Settings) -> Iterator[None]:
    """Within it no agent of the instance runs or starts. Raises Failure when one does, or its processes do not end."""
    try:
        lock = acquire(settings.admin_socket.with_suffix(".lock"))
    except (InstanceBusy, OSError) as error:
        raise Failure(str(error)) from None
    try:
        yield
    finally:
        os.close(lock)


def find_pods(settings: Settings) -> InstancePods:
    """Pods of an instance in the order of their names. Raises Failure when Podman does not answer, or the key is there
    and unreadable."""
    label = f"label={INSTANCE}={settings.instance_name}"
    text = run_program(*settings.podman.command, "pod", "ps", "--format", "json", "--filter", label)
    try:
        pods = msgspec.json.decode(text or "[]", type=list[InstancePod] | None) or []
    except UNDECODABLE as error:
        raise Failure(f"{settings.podman.path} pod ps: {error}") from None
    key = _key(settings)
    pods.sort(key=lambda pod: pod.title)
    ours = tuple(pod for pod in pods if key is None or _is_ours(pod, key))
    return InstancePods(ours, tuple(pod for pod in pods if pod not in ours))


def _key(settings: Settings) -> LabelKey | None:
    """None where there is none. Raises Failure."""
    path = settings.state_dir / NAME
    try:
        return load(path)
    except FileNotFoundError:
        return None
    except (OSError, UntrustedFile, *UNDECODABLE) as error:
        raise Failure(f"the key of labels {path} cannot be used: {error}") from None


def _is_ours(pod: InstancePod, key: LabelKey) -> bool:
    return signs_sandbox(key, pod.name, pod.labels or {}) or pod.created.timestamp() < key.made_at


def remove_pods(settings: Settings, pods: Sequence[InstancePod], most_s: float) -> Iterator[InstancePod]:
    """Stop and remove them, each within its own grace period or ``most_s`` seconds if that is less, and yield each that
    is gone. Raises Failure, after all others, for those that stay."""
    failures: list[str] = []
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        removals = {threads.submit(_remove, settings.podman.command, pod, pod.grace_s(most_s)): pod for pod in pods}
        for removal in as_completed(removals):
            error = removal.exception()
            if error is None:
                yield removals[removal]
            elif isinstance(error, Failure):
                failures.append(f"{removals[removal].title}: {error}")
            else:
                raise error
    if failures:
        raise Failure("\n".join(failures), prefix="")


def _remove(podman: Sequence[str], pod: InstancePod, grace_s: int) -> None:
    """Raises Failure. A pod that is gone already is no failure. Podman stops no paused container."""
    if pod.status == PAUSED:
        run_program(*podman, "pod", "unpause", pod.id)
    run_program(*podman, "pod", "stop", "--ignore", "--time", str(grace_s), pod.id, deadline_s=grace_s + PROGRAM_S)
    run_program(*podman, "pod", "rm", "--force", "--ignore", "--time", "0", pod.id)


def run_program(*argv: str, deadline_s: float = PROGRAM_S) -> str:
    """The program's output. Raises Failure."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=deadline_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{' '.join(argv[:3])}: {error}") from None
    if done.returncode:
        raise Failure(f"{' '.join(argv[:3])}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
