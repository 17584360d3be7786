"""Pods' demands on the node and the node's own resources: requests, QoS, ports, addresses, sysctls."""
