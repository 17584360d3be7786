"""Forms of output beside tables: what `-o` and `--sort-by` name, and JSONPath in Kubernetes' dialect. Pure."""
