"""What pods ask of the node and what the node has: requests, QoS, ports, addresses, sysctls."""
