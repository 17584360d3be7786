"""Hostile manifests: made from the types, read as any manifest is, and what is accepted is carried out.

`python -m tests.fuzz --seeds A..B` prints the seeds that fail; `make test` runs a few hundred.
"""
