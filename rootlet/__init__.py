"""The command's name, and the files that are installed with it. The program is in `supervisor`, `workers` and `ipc`."""
