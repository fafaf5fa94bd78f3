//! `marimo`: a notebook server.

use crate::entry::{Entry, Web};
use wharf_guest::WebAuth;

/// marimo's web page; shared with the flavor that adds the data science stack.
pub(super) const MARIMO_WEB: Web = Web {
    port: 2718,
    health: "/health",
    clear_password: true,
    auth: WebAuth::Bearer,
};

/// The notebook server without the data science stack.
pub const MARIMO: Entry = Entry {
    name: "marimo",
    description: "Marimo notebook server.",
    vm: false,
    ssh: false,
    web: Some(MARIMO_WEB),
    s3_prefill: true,
    ai: true,
    gpu_aware: false,
};
