"""Runs and records one sync: calls until it is cancelled, permits, threads for file systems, results. Imports no step
of a sync: steps import it."""
