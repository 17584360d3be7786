"""Metrics in Prometheus' formats: counts of all processes, values read at the scrape, statistics."""
