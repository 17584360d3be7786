"""The node of a cluster in the simulation: the real process that speaks to an API server, and a server that fails."""
