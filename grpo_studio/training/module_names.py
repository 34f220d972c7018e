"""`python -m grpo_studio.training.module_names MODEL [REVISION]`: names of its linear modules as a JSON list."""

from __future__ import annotations

import json
import sys

from grpo_studio.training.adapters import linear_modules

if __name__ == "__main__":
    print(json.dumps(linear_modules(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)))
