"""Checks of the host and the manifests: `rootlet doctor`, and the preflight of the agent when it starts.

``host`` gathers facts (I/O), ``checks`` is a table of pure functions over them, ``manifests`` says the same of what is
to run.
"""
