"""Statuses and events as reported: the status manager, event recorder, event log, the feed of the API server."""
