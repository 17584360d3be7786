"""The part of the node worker that speaks to the cluster that this host is a node of."""
