//! In what the notebook servers differ, in a browser.

use crate::browser::Browser;
use anyhow::Result;

/// What is behind a page.
pub struct Tool {
    /// A part of its interface, closed without the password as well.
    pub interface: &'static str,
    /// Where it asks for the password.
    pub login: &'static str,
    /// What it says to a wrong one.
    pub refusal: &'static str,
    /// What is on the page once one is in, whatever was open the last time.
    pub inside: &'static str,
    notebook: Notebook,
}

/// How a new notebook is opened.
enum Notebook {
    At(&'static str),
    /// By the card of this kernel in the launcher.
    Card(&'static str),
}

const MARIMO: Tool = Tool {
    interface: "api/version",
    login: "/auth/login",
    refusal: "Invalid password",
    inside: "Workspace",
    notebook: Notebook::At("?file=__new__"),
};
const JUPYTERLAB: Tool = Tool {
    interface: "api/contents",
    login: "/login",
    refusal: "Invalid credentials",
    inside: "Kernel",
    notebook: Notebook::Card("Python 3"),
};
/// JupyterLab, in which R is a language.
const R: Tool = Tool {
    notebook: Notebook::Card("R"),
    ..JUPYTERLAB
};

impl Tool {
    /// That of a flavor with a page.
    pub fn of(flavor: &str) -> &'static Self {
        match flavor {
            "marimo" | "datasciencemarimo" => &MARIMO,
            "jupyterlab" => &JUPYTERLAB,
            "rserver" | "rgeospatial" => &R,
            other => panic!("{other} has no page"),
        }
    }

    /// Opens a new notebook in a browser that is logged in; where its first cell is.
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
