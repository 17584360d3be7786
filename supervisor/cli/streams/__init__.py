"""The command line's end of exec, attach, port-forward and logs."""
