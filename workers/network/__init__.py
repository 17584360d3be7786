"""Names and addresses that a pod sees: host name, hosts file, resolv.conf, its sandbox's addresses."""
