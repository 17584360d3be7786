"""Observed and derived state of pods, needed on both sides of a link."""
