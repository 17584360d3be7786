"""Certificates that a cluster signs for its node: requests, rotation, files."""
