"""Kubernetes as both sides know it: API objects, and values of the kubelet's packages."""
