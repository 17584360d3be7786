"""Services and record of one sync, and what all syncs of a worker share. Imports no step of a sync."""
