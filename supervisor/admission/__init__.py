"""May this pod run beside the others on this node? Predicates, and the node's resources."""
