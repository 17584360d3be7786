"""The runtime's values as the kubelet names them: the Runtime protocol, names, labels, and observations made of them.
Of workers it imports the ids of `userns` only."""
