"""The kubelet's sync loop without I/O: events in, commands out, and the next step of each pod."""
