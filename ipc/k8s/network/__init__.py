"""Networks of pods, as values: their settings, addresses, ports and bandwidth (pkg/kubelet/network). Pure."""
