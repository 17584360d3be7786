"""What would break, told before it does: `rootlet doctor`, and the agent's own look at its host when it starts.

``host`` gathers facts (I/O), ``checks`` is a table of pure functions over them, ``manifests`` says the same of what is
to run.
"""
