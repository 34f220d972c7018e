"""What runs inside a sandbox. It is sent there as code, so it reads no file and imports next to nothing.

`typing` and `json` alone would double the start of the interpreter, which is paid once an item.
"""
