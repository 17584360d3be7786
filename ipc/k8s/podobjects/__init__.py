"""Objects of a pod beside its manifest: ConfigMaps, Secrets, claims, logins, its cluster's values; redaction. Pure."""
