//! What every function of the driver needs.

use crate::api::Api;
use crate::hint::Hint;
use crate::settings::Settings;
use wharf_guest::{Engine, Error, Node};

/// The node of this call: its engine, its settings, and whose objects these are.
pub struct Context<'a> {
    /// The engine's interface.
    pub api: Api<'a>,
    /// The node's settings.
    pub settings: Settings,
    /// What the last probe found.
    pub hint: Hint,
    /// The installation whose objects these are.
    pub installation: &'a str,
}

impl<'a> Context<'a> {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] on a wrong or unknown setting.
    pub fn new(node: &'a Node, engine: &'a dyn Engine) -> Result<Self, Error> {
        let settings = Settings::read(node)?;
        Ok(Self {
            api: Api::new(engine, settings.api_version.as_deref()),
            settings,
            hint: Hint::read(&node.hint),
            installation: &node.installation,
        })
    }
}
