"""Resources of pods and of the node: requests, QoS, allocations, cgroups, devices, sysctls, ids (pkg/kubelet/cm)."""
