"""Log of every process of the agent: what a line knows, its formats, the journal's protocol, verbosity by area."""
