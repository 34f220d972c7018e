"""A run as a plain TRL script that reproduces it without this program."""

from grpo_studio.script_export.writing import write

__all__ = ["write"]
