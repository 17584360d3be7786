"""Statistics of the node, its pods, containers and volumes, and their shapes on the wire. Pure."""
