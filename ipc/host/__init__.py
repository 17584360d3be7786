"""This host: its clock, directories, file systems, addresses and ids, and files that are written at once."""
