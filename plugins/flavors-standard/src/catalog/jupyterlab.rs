//! `jupyterlab`: Jupyter's notebook server.

use crate::entry::{Entry, Web};
use wharf_guest::WebAuth;

/// JupyterLab with Jupyter AI. `/api` reports the server's version without a login.
pub const JUPYTERLAB: Entry = Entry {
    name: "jupyterlab",
    description: "JupyterLab notebook server.",
    vm: false,
    ssh: false,
    web: Some(Web {
        port: 8888,
        health: "/api",
        clear_password: true,
        auth: WebAuth::Token,
    }),
    s3_prefill: true,
    ai: true,
    gpu_aware: false,
};
