"""Directories of logs and pods."""

from tests.harness.log_directories import logs, pods

__all__ = ["logs", "pods"]
