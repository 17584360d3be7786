"""The configuration: types, file, meaning on this host, reload."""
