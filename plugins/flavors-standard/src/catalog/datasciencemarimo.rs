//! `datasciencemarimo`: the data science stack in a notebook.

use super::marimo::MARIMO_WEB;
use crate::entry::Entry;

/// The notebook server with the stack of `datascience`.
pub const DATASCIENCEMARIMO: Entry = Entry {
    name: "datasciencemarimo",
    description: "Marimo notebook server with the full data science stack.",
    vm: false,
    ssh: false,
    web: Some(MARIMO_WEB),
    s3_prefill: false,
    ai: true,
    gpu_aware: true,
};
