"""Carry the result of a run away: its weights with a model card, a push to the Hub, the whole run as one archive.

Every file is written aside and renamed when it is whole; what cannot be finished leaves nothing behind.
"""
