"""GRPO Studio: launch, watch and understand GRPO training runs."""

__version__ = "0.6.0"
