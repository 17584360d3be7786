"""Objects that pods get from the cluster, by a watch for each reference: ConfigMaps, Secrets, claims, classes; services,
tokens, trust anchors."""
