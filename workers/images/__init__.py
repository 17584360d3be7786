"""Images of containers: pull policy, requests, credentials, back-off, records of pulls, and the puller of the node
worker."""
