"""What we report of a pod, generated from what is wanted and what was observed. Pure."""

from supervisor.status.generate import StatusInput, generate_pod_status

__all__ = ["StatusInput", "generate_pod_status"]
