"""Facts of the host for the status of the v1 Node (pkg/kubelet/nodestatus/setters.go). Pure."""
