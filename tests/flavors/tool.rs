//! Differences between the notebook servers in a browser.

use crate::context::FlavorContext;
use anyhow::Result;
use serde_json::Value;
use wharf_tests::browser::Browser;

/// The tool behind a page.
pub struct Tool {
    /// A path of its API, which also requires the password.
    pub interface: &'static str,
    /// The path of the login page.
    pub login: &'static str,
    /// The text after a wrong password.
    pub refusal: &'static str,
    /// An element that is always on the page after the login.
    pub inside: &'static str,
    /// The secret that the host adds to requests.
    pub credential: Credential,
    notebook: Notebook,
}

/// A secret that opens a page for the host.
pub struct Credential {
    /// The word before it in `Authorization`.
    pub scheme: &'static str,
    /// Its file inside.
    pub file: &'static str,
    /// The owner and the mode of the file.
    pub access: &'static str,
}

/// The way to open a new notebook.
enum Notebook {
    At(&'static str),
    /// By this kernel's card in the launcher.
    Card(&'static str),
}

const MARIMO: Tool = Tool {
    interface: "api/version",
    login: "/auth/login",
    refusal: "Invalid password",
    inside: "Workspace",
    credential: Credential {
        scheme: "Bearer",
        file: "/var/lib/wharf/web-password",
        access: "root 600",
    },
    notebook: Notebook::At("?file=__new__"),
};
const JUPYTERLAB: Tool = Tool {
    interface: "api/contents",
    login: "/login",
    refusal: "Invalid credentials",
    inside: "Kernel",
    credential: Credential {
        scheme: "token",
        file: "/var/lib/wharf/web-token",
        access: "user 600",
    },
    notebook: Notebook::Card("Python 3"),
};
/// JupyterLab with R as a language.
const R: Tool = Tool {
    notebook: Notebook::Card("R"),
    ..JUPYTERLAB
};

impl Tool {
    /// Returns the tool of a flavor with a page.
    pub fn of(flavor: &str) -> &'static Self {
        match flavor {
            "marimo" | "datasciencemarimo" => &MARIMO,
            "jupyterlab" => &JUPYTERLAB,
            "rserver" | "rgeospatial" => &R,
            other => panic!("{other} has no page"),
        }
    }

    /// Returns the value of `Authorization` that the host adds to requests for the page of an instance.
    pub fn credential_of(&self, context: &FlavorContext, instance: &Value) -> Result<String> {
        let Credential { scheme, file, .. } = self.credential;
        let secret = context.inside(instance, &format!("cat {file}"))?;
        Ok(format!("{scheme} {secret}"))
    }

    /// Opens a new notebook in a browser after the login; returns the selector of its first cell.
    pub fn new_notebook(&self, browser: &Browser, url: &str) -> Result<&'static str> {
        match self.notebook {
            Notebook::At(path) => {
                let cell = ".cm-content";
                browser.open(&format!("{url}{path}"), cell)?;
                Ok(cell)
            }
            Notebook::Card(kernel) => {
                let card = format!(".jp-LauncherCard[data-category=Notebook][title^='{kernel}']");
                browser.click_and_type(&card, "")?;
                Ok(".jp-Notebook .cm-content")
            }
        }
    }
}
