"""Runs commands in containers, directly by the OCI runtime or through Podman's exec sessions; permits by key."""
