"""PyTorch supports GPUs and has the CUDA libraries that it needs."""

import torch

assert torch.version.cuda, "a build for processors only"
assert torch.backends.cudnn.version(), "no cuDNN"
assert torch.distributed.is_nccl_available(), "no NCCL"
# Without the node's driver there is no device, but also no error.
assert not torch.cuda.is_available()
assert torch.__file__.startswith("/opt/python/"), torch.__file__

