"""The only place that imports torch, transformers and trl."""
