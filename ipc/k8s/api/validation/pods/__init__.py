"""Kubernetes' validation of pods, a module for each subject (pkg/apis/core/validation). Pure."""
