"""The only place that imports torch, transformers and trl.

transformers brings its parts when they are first asked for: those that every part needs are asked for here, so that
`libraries.load_libraries` has them whole before another thread asks.
"""

import torch  # noqa: F401
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer  # noqa: F401
