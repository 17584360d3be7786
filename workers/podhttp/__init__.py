"""HTTP to a port of a pod, for probes and hooks: endpoints, requests, redirects, one exchange."""
