"""The reported status of a pod, generated from desired and observed state. Pure."""
