"""The memory lab: what a run will need, what it needs, and what each loss backend needs of the same batch.

Nothing here loads torch: what has to is in `grpo_studio.training` and runs in processes of its own.
"""
