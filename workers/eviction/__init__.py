"""Measures the local storage of pods and evicts those beyond their limits."""
