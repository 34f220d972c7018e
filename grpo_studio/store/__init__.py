"""A run's folder and its SQLite file: one writer, any number of readers. Imports neither torch nor gradio."""
