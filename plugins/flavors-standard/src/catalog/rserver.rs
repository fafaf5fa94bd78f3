//! `rserver`: R in the browser.

use crate::entry::{Entry, Web};
use wharf_guest::WebAuth;

/// The page of RStudio Server, or of JupyterLab where the image has that. Both answer at this path.
pub(super) const R_WEB: Web = Web {
    port: 8787,
    health: "/api",
    clear_password: true,
    auth: WebAuth::Token,
};

/// The R server with genomics tools.
pub const RSERVER: Entry = Entry {
    name: "rserver",
    description: "R web IDE server with genomics tools.",
    vm: false,
    ssh: false,
    web: Some(R_WEB),
    s3_prefill: true,
    ai: true,
    gpu_aware: false,
};
