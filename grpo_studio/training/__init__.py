"""The only place that imports torch, transformers and trl.

transformers brings its parts when they are first asked for, and two threads that ask at once (two questions of a page)
break that: so they are asked for here, while Python lets one thread alone into this package.
"""

import torch  # noqa: F401 - first: another thread may be at it
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer  # noqa: F401
