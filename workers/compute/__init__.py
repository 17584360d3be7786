"""The decision of a sync: from a pod's spec and its observed status to `PodActions`. Pure; imports `kubecontainer` and
`podhttp`."""
