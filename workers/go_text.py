"""Texts as Go prints them, for messages that people know from the kubelet."""

from __future__ import annotations

import json


def duration(seconds: int) -> str:
    """time.Duration.String for whole seconds: ``1s``, ``1m30s``, ``1h0m0s``."""
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s"


def quoted(text: str) -> str:
    """strconv.Quote, near enough for messages: in quotation marks, on one line."""
    return json.dumps(text, ensure_ascii=False)


def head(text: bytes) -> str:
    """What was answered, as text."""
    return text.decode("utf-8", "replace")


def join_host_port(host: str, port: int) -> str:
    """net.JoinHostPort: IPv6 addresses get brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
