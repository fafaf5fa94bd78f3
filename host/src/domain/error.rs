//! What can go wrong with a request, in the domain's words. Knows no HTTP.

use super::state::InstanceState;
use std::collections::BTreeMap;

/// Field name → messages; every wrong field at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldErrors(pub BTreeMap<String, Vec<String>>);

/// Where an error of the whole body stands.
pub const NON_FIELD_ERRORS: &str = "non_field_errors";

impl FieldErrors {
    /// One message on one field.
    pub fn one(field: &str, message: impl Into<String>) -> Self {
        let mut errors = Self::default();
        errors.add(field, message);
        errors
    }

    /// Adds a message.
    pub fn add(&mut self, field: &str, message: impl Into<String>) {
        self.0
            .entry(field.to_owned())
            .or_default()
            .push(message.into());
    }

    /// Whether the field has a message already.
    pub fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    /// Ok if nothing was added.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// Not enough of something on any node: specification 2.7.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// One row for each limiting field: name, requested, nearest that is available.
    pub fields: Vec<(&'static str, u64, u64)>,
}

/// Why a use case did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields are wrong.
    #[error("invalid fields")]
    Fields(FieldErrors),
    /// No such instance, or not the caller's.
    #[error("instance not found")]
    NotFound,
    /// The shown state does not allow it.
    #[error("cannot {verb} an instance that is {state}")]
    State {
        /// What was asked.
        verb: &'static str,
        /// The present state.
        state: InstanceState,
        /// What the state would have to be.
        needed: &'static str,
    },
    /// Not allowed for this kind of instance; says why.
    #[error("{0}")]
    NotApplicable(&'static str),
    /// Capacity.
    #[error("insufficient resources")]
    Insufficient(Shortfall),
    /// The node did not answer. The text is for the operator.
    #[error("node out of reach: {0}")]
    NodeUnreachable(String),
    /// The node did not start a stopped instance. The text is for the operator.
    #[error("not started: {0}")]
    NotStarted(String),
    /// Too much is under way.
    #[error("overloaded")]
    Overloaded,
    /// A fault of ours. The text is for the operator.
    #[error("{0}")]
    Internal(String),
}

impl From<FieldErrors> for Error {
    fn from(errors: FieldErrors) -> Self {
        Self::Fields(errors)
    }
}
