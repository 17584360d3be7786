"""Carries a decision out on the runtime, in kuberuntime's steps: sync, terminating, terminated. The top room of a pod
worker."""
