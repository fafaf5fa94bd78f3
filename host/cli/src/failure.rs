//! Failures of commands for users: exit codes, and messages that name the option to change.

use anyhow::Error;
use std::io;
use wharf_client::{ApiRefusal, Error as ClientError};

const GENERAL: u8 = 1;
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const NOT_SIGNED_IN: u8 = 4;
const INSUFFICIENT: u8 = 5;
const UNREACHABLE: u8 = 6;
const TIMED_OUT: u8 = 7;

/// Fields of the interface, and the options that set them.
const OPTIONS: [(&str, &str); 33] = [
    ("name", "NAME"),
    ("resource_type", "--type"),
    ("n_vcpus", "--vcpus"),
    ("mem_gib", "--mem"),
    ("disk_size_gib", "--disk"),
    ("cpu_tier", "--tier"),
    ("flavor", "--flavor"),
    ("gpu_model", "--gpu"),
    ("public_key", "--key"),
    ("s3_endpoint_url", "--s3-endpoint"),
    ("s3_prefill_bucket", "--s3-bucket"),
    ("s3_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("s3_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("ai_provider_api_key", "--ai-key-stdin"),
    ("volumes", "--volume"),
    ("volume", "VOLUME"),
    ("path", "PATH"),
    ("size_gib", "--size"),
    ("user", "EMAIL"),
    ("every_h", "--every"),
    ("keep", "--keep"),
    ("keep_days", "--keep-days"),
    ("port", "PORT"),
    ("expires_at", "--expires"),
    ("from", "--from"),
    ("to", "--to"),
    ("endpoint", "--endpoint"),
    ("bucket", "BUCKET"),
    ("region", "--region"),
    ("prefix", "--prefix"),
    ("access_key_id", "AWS_ACCESS_KEY_ID"),
    ("secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("passphrase", "WHARF_BUCKET_PASSPHRASE"),
];

/// A failure of the command itself.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
    /// There is no key for the server.
    #[error("{0}")]
    NotSignedIn(String),
    /// A named thing does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The wait has ended without the awaited state.
    #[error("{0}")]
    TimedOut(String),
    /// The request lacks resources, with the command that would succeed.
    #[error("{message}")]
    Insufficient {
        message: String,
        #[source]
        source: ClientError,
    },
}

/// The exit code of the program for a failure.
pub fn failure_exit_code(error: &Error) -> u8 {
    if let Some(failure) = error.downcast_ref() {
        return match failure {
            Failure::Usage(_) => USAGE,
            Failure::NotSignedIn(_) => NOT_SIGNED_IN,
            Failure::NotFound(_) => NOT_FOUND,
            Failure::TimedOut(_) => TIMED_OUT,
            Failure::Insufficient { .. } => INSUFFICIENT,
        };
    }
    match error.downcast_ref() {
        Some(ClientError::Refused(refusal)) => match refusal.status {
            401 => NOT_SIGNED_IN,
            404 => NOT_FOUND,
            _ if refusal.shortage.is_some() => INSUFFICIENT,
            _ => GENERAL,
        },
        Some(ClientError::Unreachable(_)) => UNREACHABLE,
        Some(ClientError::TimedOut(_)) => TIMED_OUT,
        Some(ClientError::Url(_) | ClientError::Path(_) | ClientError::Name(_)) => USAGE,
        _ => GENERAL,
    }
}

/// Whether the reader of the output has closed it, as `head` does.
fn is_closed_output(error: &Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The message of a failure; none if there is nothing to say.
pub fn failure_message(error: &Error) -> Option<String> {
    if is_closed_output(error) {
        return None;
    }
    match error.downcast_ref() {
        Some(ClientError::Refused(refusal)) => Some(refused(refusal)),
        // Its text has the reason. The causes name the inner parts of libraries.
        Some(error @ (ClientError::Unreachable(_) | ClientError::TimedOut(_))) => {
            Some(error.to_string())
        }
        _ => match error.downcast_ref::<Failure>() {
            Some(failure) => Some(failure.to_string()),
            // The error and its causes in one line.
            None => Some(format!("{error:#}")),
        },
    }
}

fn refused(refusal: &ApiRefusal) -> String {
    let mut text = if refusal.fields.is_empty() {
        refusal.to_string()
    } else {
        let lines = refusal.fields.iter().map(|(field, messages)| {
            let option = OPTIONS.iter().find(|(name, _)| name == field);
            let messages = messages.join("; ");
            match (option, field.as_str()) {
                (Some((_, option)), _) => format!("{option} ({field}) {messages}"),
                (None, "non_field_errors") => messages,
                (None, _) => format!("{field} {messages}"),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    match refusal.status {
        401 => text.push_str(" Sign in with `wharf login URL`."),
        300..=399 => {
            let location = refusal.location.as_deref().unwrap_or("another place");
            text = format!("the server redirects to {location}; use that URL");
        }
        _ => {}
    }
    if let Some(wait) = refusal.retry_after {
        text.push_str(&format!("\nRetry after {} s.", wait.as_secs()));
    }
    if refusal.status >= 500
        && let Some(id) = &refusal.request_id
    {
        text.push_str(&format!(
            "\nThe request has the id {id} in the server's log."
        ));
    }
    text
}
