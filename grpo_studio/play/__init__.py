"""Chat with a run's model as it was and as it became, in a process of its own that gives the memory back."""
