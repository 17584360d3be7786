"""The API server's copy of what the master has told, its views, watches and selectors."""
