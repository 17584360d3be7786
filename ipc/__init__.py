"""What both sides share, in three wings: `ipc.host`, above it `ipc.k8s`, above that `ipc.link`."""
