"""Slices of this user's systemd: makes, changes, finds and stops those of pods, their QoS classes and all pods together
(pkg/kubelet/cm)."""
