"""Objects that pods get from the cluster: ConfigMaps and Secrets by a watch each, claims, classes, services, tokens."""
