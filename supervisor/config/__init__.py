"""Types of the configuration, files beside it, and what of it is shown and reloaded (pkg/kubelet/apis/config)."""
