//! Flavors of the operator's, whose images start as those of the standard flavors do.

use std::sync::Arc;
use wharf_domain::blueprint::{Blueprint, BlueprintFile, FileContent, Health, Image};
use wharf_domain::flavor::{BlueprintRequest, Flavor};
use wharf_domain::secret::SecretKind;

/// The directory that an image's init reads at the first start.
pub const FIRST_BOOT: &str = "/etc/wharf/first-boot";

const PUBLIC: u32 = 0o644;
const OWNER_ONLY: u32 = 0o600;

/// A flavor that the configuration describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFlavor {
    /// The flavor, as users see it.
    pub flavor: Flavor,
    /// Image name in the engine's syntax.
    pub image: String,
    /// Whether SSH listens on port 22 inside.
    pub ssh: bool,
    /// Port and path of the web page, if it has one.
    pub web: Option<(u16, String)>,
    /// Replacement for the image's command, unless empty.
    pub command: Vec<String>,
}

impl OwnFlavor {
    /// Composes the blueprint of an instance, for these kinds of engine.
    pub fn blueprint<'a>(
        &self,
        kinds: impl Iterator<Item = &'a str>,
        request: &BlueprintRequest,
    ) -> Arc<Blueprint> {
        let image = |kind: &str| Image {
            engine_kind: kind.to_owned(),
            reference: self.image.clone(),
        };
        let mut files = vec![
            line("user", &request.login_user),
            secret("password", FileContent::SecretCrypt(SecretKind::Password)),
        ];
        if self.ssh
            && let Some(key) = &request.public_key
        {
            files.push(line("authorized_keys", key));
        }
        if self.web.is_some() {
            files.push(secret(
                "web_password",
                FileContent::Secret(SecretKind::Password),
            ));
        }
        Arc::new(Blueprint {
            images: kinds.map(image).collect(),
            files,
            environment: vec![("WHARF_FLAVOR".to_owned(), self.flavor.name.clone())],
            command: self.command.clone(),
            health: match &self.web {
                Some((_, path)) => Health::Http(path.clone()),
                None => Health::Ssh,
            },
            ssh: self.ssh,
            web_port: self.web.as_ref().map(|(port, _)| *port),
        })
    }
}

/// A file of the first start without a secret.
pub fn first_boot(name: &str, text: &str) -> BlueprintFile {
    file(name, PUBLIC, FileContent::Bytes(text.as_bytes().to_vec()))
}

fn line(name: &str, text: &str) -> BlueprintFile {
    first_boot(name, &format!("{}\n", text.trim()))
}

fn secret(name: &str, content: FileContent) -> BlueprintFile {
    file(name, OWNER_ONLY, content)
}

fn file(name: &str, mode: u32, content: FileContent) -> BlueprintFile {
    BlueprintFile {
        path: format!("{FIRST_BOOT}/{name}"),
        mode,
        uid: 0,
        gid: 0,
        content,
    }
}
