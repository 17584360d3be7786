"""The master, the zygote and the command line."""
