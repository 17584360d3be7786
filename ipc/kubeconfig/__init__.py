"""Kubeconfigs, decoded and written, and what goes with them: bootstrap tokens, pinned authorities, exec plugins."""
