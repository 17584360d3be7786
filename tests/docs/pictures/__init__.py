"""Pictures of the documentation: the life of a pod, and the network modes."""
