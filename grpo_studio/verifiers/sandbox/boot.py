"""How code gets into a sandbox: through the pipe, so that nothing of this project needs to be visible there."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import CodeType

PACKAGE = "grpo_studio.verifiers.sandbox.inside"
_MODULES = ("wire", "confine", "cage", "program", "script", "gold", "mini_pytest", "remote", "tests", "probe")
# Reads its code from the pipe; the modules go by their own names, under packages that are otherwise empty. `exit` and
# `quit`, which programs use, are of `site`, and that is not loaded.
BOOT = """
import sys, os, marshal
def frame():
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        size = 4 + int.from_bytes(data[:4], "big") - len(data) if len(data) >= 4 else 4 - len(data)
        part = os.read(source, size)
        if not part: os._exit(3)
        data += part
    return data[4:]
source, sink = os.dup(0), int(sys.argv[1])
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.write(sink, b"\\0\\0\\0\\5ready")
codes, entry, settings = marshal.loads(frame())
sys.argv, name = [""], ""
for part in settings["package"].split("."):
    name = (name + "." + part).strip(".")
    parent = sys.modules[name] = type(sys)(name)
    parent.__path__ = []
for short, code in codes:
    module = type(sys)(name + "." + short)
    sys.modules[module.__name__] = module
    setattr(parent, short, module)
    exec(code, module.__dict__)
sys.path += settings["site"]
import builtins
builtins.exit = builtins.quit = sys.exit
def run(measures):
    os.write(sink, len(m := ("; ".join(measures)).encode()).to_bytes(4, "big") + m)
    getattr(parent, entry).main(source, sink, settings)
if settings["bubblewrap"]:
    if settings["user"] is not None:
        parent.confine.become(settings["user"])
        parent.confine.own_user_namespace()
    parent.confine.limit(settings)
    run([])
else:
    parent.cage.guard(source, settings, run)
os._exit(0)
"""


@cache
def codes(entry: str, guarded: bool) -> tuple[tuple[str, CodeType], ...]:
    """The modules that this entry needs, compiled, in the order in which they are to be loaded."""
    needed = {
        "program": ("wire", "program"),
        "script": ("wire", "script"),
        "tests": ("wire", "gold", "mini_pytest", "remote", "tests"),
        "probe": ("wire", "probe"),
    }[entry]
    folder = Path(__file__).parent / "inside"
    names = [name for name in _MODULES if name in needed or name == "confine" or (name == "cage" and guarded)]
    return tuple((name, compile((folder / f"{name}.py").read_text("utf-8"), f"<{name}>", "exec")) for name in names)
