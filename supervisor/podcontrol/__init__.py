"""What every handler of the sync loop does to pods: report, kill, pause, stop, remove; the commands that come of it."""
