//! The result of one step of a keeper.

use super::attempt::FIRST_PAUSE;
use super::store::StoreFailure;
use std::time::Duration;
use wharf_domain::driver::{DiskReport, PluginError};
use wharf_domain::error::Error;

/// The result of one step.
pub enum Stepped {
    /// The row has changed.
    Done,
    /// The next step is due after this time.
    After(Duration),
    /// The step failed.
    Failed(String),
    /// The node was out of reach.
    Away(String),
}

impl From<Result<(), Error>> for Stepped {
    fn from(written: Result<(), Error>) -> Self {
        match written {
            Ok(()) => Self::Done,
            Err(error) => Self::Failed(error.chain()),
        }
    }
}

impl From<StoreFailure> for Stepped {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::Node(error) => Self::Away(error.to_string()),
            StoreFailure::Rows(error) => Self::Failed(error.chain()),
        }
    }
}

impl From<PluginError> for Stepped {
    fn from(error: PluginError) -> Self {
        match error {
            PluginError::RetryLater(pause) => Self::After(pause),
            error @ (PluginError::Unreachable(_) | PluginError::Busy) => {
                Self::Away(error.to_string())
            }
            error => Self::Failed(error.to_string()),
        }
    }
}

impl<F> From<DiskReport<F>> for Stepped {
    fn from(report: DiskReport<F>) -> Self {
        Self::After(report.again.unwrap_or(FIRST_PAUSE))
    }
}
