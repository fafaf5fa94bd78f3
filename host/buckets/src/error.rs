//! The errors of buckets, in words for their user.

/// The most characters of a server's own words.
const MAX_WORDS: usize = 200;

/// A bucket, or what it holds, could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    #[error("the address of the bucket {0}")]
    Address(String),
    #[error("the server does not accept the access key")]
    Keys,
    #[error("the server has no such bucket")]
    NoBucket,
    #[error("the server denied the request: {0}")]
    Denied(String),
    #[error("the bucket is full: {0}")]
    Full(String),
    #[error("the server has too many requests")]
    Throttled,
    #[error("the server is not reachable: {0}")]
    Unreachable(String),
    #[error("the bucket has no {0}")]
    Missing(&'static str),
    #[error("the backup was altered or damaged: {0}")]
    Altered(String),
    #[error("the content broke off before its end")]
    BrokenOff,
    #[error("{0}")]
    Other(String),
}

impl BucketError {
    /// Whether the same request will fail again unless someone changes something.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::Throttled | Self::Unreachable(_) | Self::BrokenOff
        )
    }

    /// The error that a server's answer tells. `words` are the server's own.
    pub(crate) fn of_answer(status: u16, code: &str, words: &str) -> Self {
        let words = if words.is_empty() { code } else { words };
        let words = match words {
            "" => format!("status {status}"),
            words => cut(words),
        };
        match (status, code) {
            (_, "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidToken") => Self::Keys,
            (_, "NoSuchBucket") => Self::NoBucket,
            (_, "QuotaExceeded" | "XMinioStorageFull" | "EntityTooLarge") | (507 | 413, _) => {
                Self::Full(words)
            }
            (_, "SlowDown" | "TooManyRequests" | "RequestLimitExceeded") | (429 | 503, _) => {
                Self::Throttled
            }
            (_, "AuthorizationHeaderMalformed" | "PermanentRedirect") | (300..=399, _) => {
                Self::Address(format!("has the wrong region or endpoint: {words}"))
            }
            (401 | 403, _) => Self::Denied(words),
            (404, _) => Self::Missing("such object"),
            (501, _) => Self::not_implemented(),
            (408 | 500.., _) | (_, "RequestTimeout") => Self::Unreachable(words),
            _ => Self::Other(format!("the server refused the request: {words}")),
        }
    }

    pub(crate) fn not_implemented() -> Self {
        Self::Other("the server does not know this request".to_owned())
    }

    pub(crate) fn altered(what: &str) -> Self {
        Self::Altered(what.to_owned())
    }
}

/// The beginning of a text of a server, on one line.
fn cut(text: &str) -> String {
    let visible = text.chars().filter(|character| !character.is_control());
    visible.take(MAX_WORDS).collect()
}
