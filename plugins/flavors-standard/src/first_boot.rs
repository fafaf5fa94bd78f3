//! The files that an image's init applies at the first start and then removes. Those of a container
//! are in `/etc/wharf/first-boot`. Those of a virtual machine are in `/var/lib/wharf/first-boot` of
//! its container, and only QEMU's user can read them.
//!
//! | name | content | when |
//! |---|---|---|
//! | `user` | name of the login account | always |
//! | `password` | its password's crypt hash | always |
//! | `authorized_keys` | the user's public key | given |
//! | `web_password` | the secret that the web server checks itself: the password in clear, or the web token of a private page with one secret | the web server checks it itself |
//! | `web_token` | the token with which the host opens the page | the web server takes one |
//! | `private_page` | an empty line | the page has a private port, and the web server takes a token |
//! | `s3/endpoint_url`, `s3/access_key_id`, `s3/secret_access_key`, `s3/prefill_bucket` | the user's S3 access | given |
//! | `ai_provider_api_key` | the user's key | given, and the flavor has an assistant |

use crate::entry::Entry;
use wharf_guest::{BlueprintRequest, Content, File, ResourceType, Secret, WebAuth};

const PUBLIC: u32 = 0o644;
const OWNER_ONLY: u32 = 0o600;

/// The directory that an image's init reads, and the owner of its files.
struct Place {
    directory: &'static str,
    owner: u32,
    /// The mode of files without secrets.
    mode: u32,
}

const CONTAINER: Place = Place {
    directory: "/etc/wharf/first-boot",
    owner: 0,
    mode: PUBLIC,
};
const VM: Place = Place {
    directory: "/var/lib/wharf/first-boot",
    owner: 1000,
    mode: OWNER_ONLY,
};

const S3: [(&str, Secret); 4] = [
    ("s3/endpoint_url", Secret::S3EndpointUrl),
    ("s3/access_key_id", Secret::S3AccessKeyId),
    ("s3/secret_access_key", Secret::S3SecretAccessKey),
    ("s3/prefill_bucket", Secret::S3PrefillBucket),
];

/// Builds the files for this request.
pub fn files(entry: &Entry, request: &BlueprintRequest) -> Vec<File> {
    let place = match request.resource_type {
        ResourceType::Container => CONTAINER,
        ResourceType::Vm => VM,
    };
    let mut files = vec![
        place.plain("user", &request.login_user),
        place.secret("password", Content::SecretCrypt(Secret::Password)),
    ];
    if let Some(key) = request.public_key.as_deref() {
        files.push(place.plain("authorized_keys", key));
    }
    if let Some(web) = entry.web.filter(|web| web.clear_password) {
        // A server with one secret alone would show the password to the programs of all visitors.
        let has_one_secret = web.auth != WebAuth::Token;
        let secret = if has_one_secret && request.private_page {
            Secret::WebToken
        } else {
            Secret::Password
        };
        files.push(place.secret("web_password", Content::Secret(secret)));
    }
    if entry.web.is_some_and(|web| web.auth == WebAuth::Token) {
        files.push(place.secret("web_token", Content::Secret(Secret::WebToken)));
        // RStudio Server has either a sign-in with the password or the token.
        if request.private_page {
            files.push(place.plain("private_page", ""));
        }
    }
    if request.s3_prefill {
        files.extend(S3.map(|(name, value)| place.secret(name, Content::Secret(value))));
    }
    if request.ai && entry.ai {
        let key = Content::Secret(Secret::AiProviderApiKey);
        files.push(place.secret("ai_provider_api_key", key));
    }
    files
}

impl Place {
    fn plain(&self, name: &str, text: &str) -> File {
        let line = format!("{}\n", text.trim()).into_bytes();
        self.file(name, self.mode, Content::Bytes(line))
    }

    fn secret(&self, name: &str, content: Content) -> File {
        self.file(name, OWNER_ONLY, content)
    }

    fn file(&self, name: &str, mode: u32, content: Content) -> File {
        File {
            path: format!("{}/{name}", self.directory),
            mode,
            uid: self.owner,
            gid: self.owner,
            content,
        }
    }
}
