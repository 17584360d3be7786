"""The time of a node shutdown in the configuration: its rules. Pure."""

from __future__ import annotations

from typing import Final

from supervisor.config.settings import Settings, SettingsError

CRITICAL: Final = "shutdownGracePeriodCriticalPods"
BY_PRIORITY: Final = "shutdownGracePeriodByPodPriority"


def check_shutdown_grace(settings: Settings, file: str) -> None:
    """pkg/kubelet/apis/config/validation/validation.go, ValidateKubeletConfiguration. Raises SettingsError."""
    total_s, critical_s = settings.shutdown_grace_period_s, settings.shutdown_grace_period_critical_pods_s
    classes = settings.shutdown_grace_period_by_pod_priority
    if critical_s > total_s:
        raise SettingsError(file, CRITICAL, "must not be longer than shutdownGracePeriod, of which it is the end")
    for name, period_s in (("shutdownGracePeriod", total_s), (CRITICAL, critical_s)):
        if 0 < period_s < 1:
            raise SettingsError(file, name, "must be 0s or at least 1s")
    if classes and total_s:
        raise SettingsError(file, BY_PRIORITY, "says the same as shutdownGracePeriod: give one of them")
    if len({item.priority for item in classes}) < len(classes):
        raise SettingsError(file, BY_PRIORITY, "names a priority twice")
