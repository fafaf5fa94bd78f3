//! `datascience`: Python's data science stack.

use crate::entry::Entry;

/// The data science stack, over SSH.
pub const DATASCIENCE: Entry = Entry {
    name: "datascience",
    description: "Python data science stack: polars, pandas, scikit-learn, PyTorch and others, accelerated when a GPU is added.",
    vm: false,
    ssh: true,
    web: None,
    s3_prefill: false,
    ai: true,
    gpu_aware: true,
};
