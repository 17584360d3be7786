"""This host: its clock, directories, file systems and addresses, and files that are written at once."""
