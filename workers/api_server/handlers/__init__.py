"""Answers to requests: reads, changes, logs."""
