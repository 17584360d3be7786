"""Objects that pods get from the cluster: ConfigMaps and Secrets by one watch for each reference, claims and their
volumes, classes of runtimes, variables of services, tokens, trust anchors. Tells the master what changes.
"""
