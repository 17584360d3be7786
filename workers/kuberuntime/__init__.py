"""Carries out a sync on the runtime in kuberuntime's steps: sync, terminating, terminated. Imports all other rooms of a
pod worker but `prober`."""
