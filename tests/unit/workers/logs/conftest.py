"""Directories of logs and pods."""

from tests.support.log_directories import logs, pods

__all__ = ["logs", "pods"]
