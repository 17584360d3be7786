"""Podman's libpod API: its endpoints with verb, path and deadline, and the shapes of their answers. Pure."""
