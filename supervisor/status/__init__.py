"""What we report of a pod, generated from what is wanted and what was observed. Pure."""

from supervisor.status.generate import Failure, StatusInput, generate_pod_status, is_restarting_all
from supervisor.status.phase import TERMINAL_PHASES
from supervisor.status.report import merge_pod_status

__all__ = ["TERMINAL_PHASES", "Failure", "StatusInput", "generate_pod_status", "is_restarting_all", "merge_pod_status"]
