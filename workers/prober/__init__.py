"""Probes of containers: when which one is due, and what its answers make of the container."""
