"""Certificates that a cluster signs for its node: requests, the first one, rotation, and the files that hold them."""
