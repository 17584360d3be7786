"""Probes containers: one pure state machine and one task per probe, and one module per kind of handler."""
