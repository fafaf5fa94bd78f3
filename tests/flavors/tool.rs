//! Differences between the notebook servers in a browser.

use anyhow::Result;
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
    /// The credential that the host adds.
    pub credential: Credential,
    notebook: Notebook,
}

/// A credential of the host.
pub enum Credential {
    /// The instance's password.
    Password,
    /// A token of its own.
    Token,
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
    credential: Credential::Password,
    notebook: Notebook::At("?file=__new__"),
};
const JUPYTERLAB: Tool = Tool {
    interface: "api/contents",
    login: "/login",
    refusal: "Invalid credentials",
    inside: "Kernel",
    credential: Credential::Token,
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
