"""PyTorch is the build that can use a GPU, with the libraries that it needs of CUDA."""

import torch

assert torch.version.cuda, "a build for processors only"
assert torch.backends.cudnn.version(), "no cuDNN"
assert torch.distributed.is_nccl_available(), "no NCCL"
# The driver is the node's and not there, so that there is no device: not an error, just none.
assert not torch.cuda.is_available()
assert torch.__file__.startswith("/opt/python/"), torch.__file__

