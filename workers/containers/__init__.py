"""Containers of the node as they are known: the newest inspect, the owner, the end of the process."""
