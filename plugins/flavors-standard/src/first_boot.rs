//! The files an image's init applies at the first start and then removes.
//!
//! | below `/etc/wharf/first-boot/` | holds | when |
//! |---|---|---|
//! | `user` | name of the login account | always |
//! | `password` | its password's crypt hash | always |
//! | `authorized_keys` | the user's public key | given, and the flavor has SSH |
//! | `web_password` | the password in clear | the web server checks it itself |
//! | `s3/endpoint_url`, `s3/access_key_id`, `s3/secret_access_key`, `s3/prefill_bucket` | the user's S3 access | given |
//! | `ai_provider_api_key` | the user's key | given, and the flavor has an assistant |

use crate::entry::Entry;
use wharf_guest::{BlueprintRequest, Content, File, Secret};

/// Where the image's init looks.
pub const DIRECTORY: &str = "/etc/wharf/first-boot";

const PUBLIC: u32 = 0o644;
const ROOT_ONLY: u32 = 0o600;

const S3: [(&str, Secret); 4] = [
    ("s3/endpoint_url", Secret::S3EndpointUrl),
    ("s3/access_key_id", Secret::S3AccessKeyId),
    ("s3/secret_access_key", Secret::S3SecretAccessKey),
    ("s3/prefill_bucket", Secret::S3PrefillBucket),
];

/// The files for this request.
#[must_use]
pub fn files(entry: &Entry, request: &BlueprintRequest) -> Vec<File> {
    let mut files = vec![
        file("user", PUBLIC, line(&request.login_user)),
        file(
            "password",
            ROOT_ONLY,
            Content::SecretCrypt(Secret::Password),
        ),
    ];
    if let Some(key) = request.public_key.as_deref().filter(|_| entry.ssh) {
        files.push(file("authorized_keys", PUBLIC, line(key)));
    }
    if entry.web.is_some_and(|web| web.clear_password) {
        files.push(secret("web_password", Secret::Password));
    }
    if request.s3_prefill {
        files.extend(S3.map(|(name, value)| secret(name, value)));
    }
    if request.ai && entry.ai {
        files.push(secret("ai_provider_api_key", Secret::AiProviderApiKey));
    }
    files
}

fn file(name: &str, mode: u32, content: Content) -> File {
    File {
        path: format!("{DIRECTORY}/{name}"),
        mode,
        uid: 0,
        gid: 0,
        content,
    }
}

fn secret(name: &str, value: Secret) -> File {
    file(name, ROOT_ONLY, Content::Secret(value))
}

fn line(text: &str) -> Content {
    Content::Bytes(format!("{}\n", text.trim()).into_bytes())
}
