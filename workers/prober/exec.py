"""An exec probe: does a command in the container end with 0."""

from __future__ import annotations

from collections.abc import Sequence

from ipc.host.text.durations import format_duration
from ipc.host.text.gofmt import head, quoted
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.probe import ExecAction
from workers.env.expansion import expand_all
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.runtime import ErrorKind, Runtime, RuntimeCallError
from workers.prober.outcome import MAX_OUTPUT_BYTES, Answer, ProbeError, ProbeOutcome, ProbeTarget


async def probe_exec(action: ExecAction, target: ProbeTarget, timeout_s: int, runtime: Runtime) -> ProbeOutcome:
    """Mirrors execProber.Probe (pkg/probe/exec/exec.go) and newExecInContainer (pkg/kubelet/prober/prober.go).

    A command that cannot be run at all (no such file) raises ProbeError, as with containerd: the container is not to
    blame for it, so its liveness probe never restarts it. One that takes too long is killed and is a failure.
    """
    try:
        command = expanded_command(action.command, target.container)
    except ConfigError as error:
        raise ProbeError(error.message) from error
    try:
        result = await runtime.exec_container(target.container_id, command, timeout_s)
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.TIMEOUT:
            raise ProbeError(str(error)) from error
        return ProbeOutcome(Answer.FAILURE, _timed_out(command, timeout_s))
    answer = Answer.FAILURE if result.exit_code else Answer.SUCCESS
    return ProbeOutcome(answer, head(result.output[:MAX_OUTPUT_BYTES]))


def expanded_command(command: Sequence[str], container: Container) -> list[str]:
    """Command with the values that stand in the manifest itself; a variable from elsewhere counts as empty.

    Mirrors ExpandContainerCommandOnlyStatic (pkg/kubelet/container/helpers.go). Raises ConfigError.
    """
    values = {variable.name: variable.value for variable in container.env}
    return expand_all(command, values)


def _timed_out(command: Sequence[str], timeout_s: int) -> str:
    return f"command timed out: {quoted(' '.join(command))} timed out after {format_duration(timeout_s)}"
