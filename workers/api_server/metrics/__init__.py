"""Metrics of the agent in Prometheus' formats: what was counted, what is read at the scrape, what statistics say."""
