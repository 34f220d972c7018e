"""The web app: pages that ask the store and the supervisor; the only place, with app.py, that imports gradio."""
