"""Kubeconfigs, the TLS that they ask for, and what exec plugins give."""
