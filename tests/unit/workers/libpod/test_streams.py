"""Streams of a Podman service that answers anything."""

from __future__ import annotations
