//! The context of a call.

use crate::api::Api;
use crate::settings::Settings;
use std::cell::Cell;
use wharf_guest::Engine;
use wharf_guest::{Error, Node};

/// The node of a call: its engine, its settings and the installation.
pub struct Context<'a> {
    /// The engine's interface.
    pub api: Api<'a>,
    /// The node's settings.
    pub settings: Settings,
    /// The installation that owns the objects.
    pub installation: &'a str,
    /// Whether the owner's network of this call has the name of an earlier version; none if unknown.
    pub has_earlier_name: Cell<Option<bool>>,
}

impl<'a> Context<'a> {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] on a wrong or unknown setting.
    pub fn new(node: &'a Node, engine: &'a dyn Engine) -> Result<Self, Error> {
        Ok(Self {
            api: Api::new(engine),
            settings: wharf_guest::settings(node)?,
            installation: &node.installation,
            has_earlier_name: Cell::new(None),
        })
    }
}
