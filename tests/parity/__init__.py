"""Behaviours of the kubelet that Rootlet has, and the test that shows each.

`docs/parity.toml` holds the rows; `python -m tests.parity > docs/parity.md` makes the page of them.
"""
