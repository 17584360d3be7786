"""Files and directories by descriptor: no link followed, work bounded."""
