"""The kubelet's own paths: pods, pages of state, logs, streams, profiles, manifests by request."""
