"""Kubeconfigs, bootstrap tokens, pinned authorities, and what exec plugins give."""
