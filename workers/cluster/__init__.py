"""The process that speaks to the cluster that this host is a node of."""
