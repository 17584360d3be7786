"""This host as a node of a cluster: the rooms of the process that alone speaks to its API server."""
