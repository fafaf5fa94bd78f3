//! Files that are part of the program. Each is embedded in one form, gzipped or not, and its other
//! form is made at first use.

use super::compress::{self, accepts_gzip};
use super::respond::{self, Response};
use super::unsent::Static;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use http::HeaderMap;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use std::io::Read;
use std::sync::OnceLock;

/// A file that the program serves.
pub(super) struct Asset {
    content_type: &'static str,
    embedded: &'static [u8],
    form: AssetEncoding,
    /// The form that is not embedded.
    other: OnceLock<Bytes>,
}

/// How a file is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AssetEncoding {
    Plain,
    Gzipped,
    /// Plain, and compression does not make it smaller.
    Incompressible,
}

/// The headers of a group of files.
pub(super) struct Rules {
    /// The content security policy.
    pub(super) policy: &'static str,
    /// `Cache-Control`.
    pub(super) cache: &'static str,
}

impl Asset {
    /// A file that is embedded as it is, and sent compressed if its content is text.
    pub(super) const fn plain(content_type: &'static str, content: &'static [u8]) -> Self {
        Self::new(content_type, content, AssetEncoding::Plain)
    }

    /// A file that is embedded compressed.
    pub(super) const fn gzipped(content_type: &'static str, content: &'static [u8]) -> Self {
        Self::new(content_type, content, AssetEncoding::Gzipped)
    }

    /// A file that is only sent as it is.
    pub(super) const fn incompressible(content_type: &'static str, content: &'static [u8]) -> Self {
        Self::new(content_type, content, AssetEncoding::Incompressible)
    }

    const fn new(content_type: &'static str, embedded: &'static [u8], form: AssetEncoding) -> Self {
        Self {
            content_type,
            embedded,
            form,
            other: OnceLock::new(),
        }
    }

    /// The file in the form that the client accepts.
    pub(super) fn respond(&self, request: &HeaderMap, rules: &Rules) -> Response {
        let gzip = self.form != AssetEncoding::Incompressible && accepts_gzip(request);
        let mut response = respond::document(self.content_type, self.content(gzip));
        response.extensions_mut().insert(Static);
        let headers = response.headers_mut();
        let fixed: [(HeaderName, &'static str); 4] = [
            (CONTENT_SECURITY_POLICY, rules.policy),
            (CACHE_CONTROL, rules.cache),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if self.form != AssetEncoding::Incompressible {
            compress::declare(headers, gzip);
        }
        response
    }

    fn content(&self, gzip: bool) -> Bytes {
        if gzip == (self.form == AssetEncoding::Gzipped) {
            return Bytes::from_static(self.embedded);
        }
        let convert = || {
            let mut content = Vec::new();
            // Reading from memory cannot fail, and the embedded file is whole.
            let _ = if gzip {
                GzEncoder::new(self.embedded, Compression::best()).read_to_end(&mut content)
            } else {
                GzDecoder::new(self.embedded).read_to_end(&mut content)
            };
            content.into()
        };
        self.other.get_or_init(convert).clone()
    }
}
