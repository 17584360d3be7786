"""Kubernetes' own decision tables, run against the functions that answer for them here.

`python -m tests.kubelet_tables [FILE] [--group NAME] [-v]`. One thin adapter per group translates types and decides
nothing; a group without an adapter is skipped, with the reason.
"""
