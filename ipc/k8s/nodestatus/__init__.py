"""Status of the v1 Node, set part by part as pkg/kubelet/nodestatus/setters.go does. Pure."""
