"""Runs lifecycle handlers of hooks by exec, HTTP or sleep. The steps that call it lie in `kuberuntime`."""
