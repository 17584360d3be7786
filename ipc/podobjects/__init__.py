"""What a pod gets beside its manifest: ConfigMaps, Secrets, claims, logins, its cluster's values; redaction. Pure."""
