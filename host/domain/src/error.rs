//! Errors of the use cases, in the domain's words. They know no HTTP.

use super::state::InstanceState;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt::{self, Display};

/// Messages by field name, for all wrong fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldErrors(pub BTreeMap<String, Vec<String>>);

/// Field name for errors of the whole body.
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

    /// `Ok` if there are no errors.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// A lack of capacity: specification 2.7.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// Name, requested and nearest available quantity of each limiting field.
    pub fields: Vec<(&'static str, u64, u64)>,
    /// A node still holds resources of deleted instances.
    pub freeing: bool,
    /// A node takes nothing new, because it does not hold the sizes of disks.
    pub limits_broken: bool,
    /// The flavor, if nodes would run the instance but none has its image.
    pub no_image: Option<String>,
    /// Names of the volumes that bind the instance to one node.
    pub volumes: Vec<String>,
}

impl From<Vec<(&'static str, u64, u64)>> for Shortfall {
    fn from(fields: Vec<(&'static str, u64, u64)>) -> Self {
        Self {
            fields,
            freeing: false,
            limits_broken: false,
            no_image: None,
            volumes: Vec::new(),
        }
    }
}

/// The error of a use case.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields are wrong.
    #[error("invalid fields")]
    Fields(FieldErrors),
    /// The caller has no such instance.
    #[error("instance not found")]
    NotFound,
    /// The caller has no such key.
    #[error("key not found")]
    KeyNotFound,
    /// A thing of this kind does not exist or is another user's.
    #[error("{0} not found")]
    Missing(&'static str),
    /// No user has this e-mail address and password.
    #[error("sign-in refused")]
    SignInRefused,
    /// The change needs a recent sign-in.
    #[error("the sign-in is not recent")]
    StaleSignIn,
    /// The instance's shown state does not allow the action.
    #[error("cannot {verb} an instance that is {state}")]
    State {
        /// The action.
        verb: &'static str,
        /// The present state.
        state: InstanceState,
        /// The states that allow it.
        needed: &'static str,
    },
    /// The action is not possible for this instance; the text says why.
    #[error("{0}")]
    NotApplicable(&'static str),
    /// [`Self::NotApplicable`] with a text that names things of the caller.
    #[error("{0}")]
    Refused(String),
    /// The operator suspended the instance or its owner.
    #[error("the operator has suspended {suspended}: {reason}")]
    Suspended {
        /// The suspended party, in words for its user.
        suspended: &'static str,
        /// The operator's reason.
        reason: String,
    },
    /// No node has the capacity.
    #[error("insufficient resources")]
    Insufficient(Shortfall),
    /// The owner's quota does not allow it.
    #[error("over quota")]
    OverQuota(Shortfall),
    /// The node did not respond. The text is for the operator.
    #[error("node out of reach: {0}")]
    NodeUnreachable(String),
    /// The node did not start a stopped instance. The text is for the operator.
    #[error("not started: {0}")]
    NotStarted(String),
    /// The condition of the request (`If-Match`) does not hold for the instance.
    #[error("the condition of the request does not hold")]
    PreconditionFailed,
    /// Another request with this idempotency key is in progress.
    #[error("a request with this idempotency key is in progress")]
    IdempotencyKeyBusy,
    /// The idempotency key belongs to a request with another body.
    #[error("the idempotency key belongs to a request with another body")]
    IdempotencyKeyUsed,
    /// The user has this number of terminals, which is the most.
    #[error("too many terminals: {0}")]
    TooManyTerminals(usize),
    /// The service has no place for another terminal.
    #[error("no terminal is free")]
    NoTerminalFree,
    /// The user has this number of tunnels, which is the most.
    #[error("too many tunnels: {0}")]
    TooManyTunnels(usize),
    /// A port of the instance was not reached; the text says why.
    #[error("{0}")]
    Unconnected(&'static str),
    /// Too many requests are in progress.
    #[error("overloaded")]
    Overloaded,
    /// The disk of the database has room for the most needed changes only.
    #[error("the disk of the database is nearly full")]
    DiskFull,
    /// The changes of a user have left the rows of a day.
    #[error("too many changes in a day")]
    TooManyRecords {
        /// Seconds until the next change is taken.
        retry_after_s: u64,
        /// Rows of a day.
        per_day: u32,
    },
    /// A fault of the service, for the operator.
    #[error(transparent)]
    Internal(Internal),
}

/// The cause of an internal error.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A fault of the service and its cause. `Display` leaves the cause out: see [`Error::chain`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Internal {
    message: String,
    source: Option<Cause>,
}

impl Error {
    /// An internal error without a cause.
    pub fn internal(message: impl Display) -> Self {
        Self::Internal(Internal {
            message: message.to_string(),
            source: None,
        })
    }

    /// An internal error with its cause.
    pub fn caused(message: impl Display, cause: impl Into<Cause>) -> Self {
        Self::Internal(Internal {
            message: message.to_string(),
            source: Some(cause.into()),
        })
    }

    /// The error and all its causes, for the log.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and all its causes.
pub fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The text of an error and all its causes, for the log.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    texts.join(": ")
}

/// One line for each field.
impl Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (field, messages)) in self.0.iter().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            write!(f, "{separator}{field}: {}", messages.join("; "))?;
        }
        Ok(())
    }
}

impl From<FieldErrors> for Error {
    fn from(errors: FieldErrors) -> Self {
        Self::Fields(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn only_the_chain_names_the_causes() {
        let cause = Error::caused("reading row 7", std::io::Error::other("disk full"));
        let error = Error::caused("cannot list", cause);
        assert_eq!(error.to_string(), "cannot list");
        assert_eq!(error.chain(), "cannot list: reading row 7: disk full");
        let plain = Error::internal("no name is free");
        assert_eq!(plain.chain(), plain.to_string());
    }
}
