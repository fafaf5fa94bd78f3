//! Pages by name, as the gateway asks for them.

use super::App;
use super::labels::named;
use super::private_ports::has_private_page;
use super::shares::ShareRow;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use wharf_db::Read;
use wharf_domain::error::Error;
use wharf_domain::flavor::WebAuth;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::Instance;
use wharf_domain::secret::{SecretKind, SecretText};

/// The page that a label names.
#[derive(Debug, Clone)]
pub struct NamedPage {
    pub instance: Instance,
    /// The port inside the instance; none for the page of the flavor.
    pub port: Option<u16>,
    /// The label that the page has now.
    pub label: String,
    pub share: Option<ShareRow>,
    /// The host and the port of the flavor's page.
    pub address: Option<(String, u16)>,
}

/// The digest of a password of an instance. It tells no more than a guess of the whole password.
pub fn password_digest(id: InstanceId, password: &SecretText) -> String {
    let digest = Sha256::new()
        .chain_update(id.0.as_bytes())
        .chain_update(password.expose())
        .finalize();
    URL_SAFE_NO_PAD.encode(digest)
}

impl App {
    /// Returns the page of a living instance that has a label, or had it before a rename.
    pub fn named_page(&self, label: &str) -> Result<Option<NamedPage>, Error> {
        self.db.read(|rows| {
            let Some(page) = named(rows, label)? else {
                return Ok(None);
            };
            let is_private = has_private_page(rows, page.instance.id)?;
            Ok(Some(NamedPage {
                label: page.label,
                port: page.port,
                share: page.share,
                address: self.web_address(&page.instance, is_private),
                instance: page.instance,
            }))
        })
    }

    /// Returns the key of the cookies of visitors.
    pub fn cookie_key(&self) -> [u8; 32] {
        self.vault.derived_key("cookies of pages")
    }

    /// Returns the digest of the password of an instance; none if it cannot be decrypted.
    pub fn page_password(&self, instance: &Instance) -> Option<String> {
        let password = self.vault.password(instance);
        (!password.expose().is_empty()).then(|| password_digest(instance.id, &password))
    }

    /// Returns the value of `Authorization` that the page of an instance takes, by its flavor. It never changes.
    pub fn page_credential(&self, instance: &Instance) -> Result<Option<SecretText>, Error> {
        let mut flavors = self.plugins.flavors().iter();
        let flavor = flavors.find(|flavor| flavor.name == instance.flavor);
        let auth = flavor.map_or(WebAuth::None, |flavor| flavor.web_auth);
        let spec = match auth {
            WebAuth::None => return Ok(None),
            _ => (self.db).read(|rows| rows.provisioning_spec(instance.id))?,
        };
        // An instance of an earlier version has no token: its page asks for the password.
        let token = match spec.filter(|spec| spec.blueprint.has_secret(SecretKind::WebToken)) {
            Some(spec) => {
                let (id, password) = (instance.id, &instance.password);
                let secrets = self.vault.decrypt_all(id, &spec.secrets, password)?;
                secrets.get(SecretKind::WebToken).cloned()
            }
            None => None,
        };
        let secret = match token {
            Some(token) => token,
            None if auth == WebAuth::Token => return Ok(None),
            None => self.vault.decrypt_text(instance.id, &instance.password)?,
        };
        let secret = secret.expose();
        let value = match auth {
            WebAuth::None => return Ok(None),
            WebAuth::Bearer => format!("Bearer {secret}"),
            WebAuth::Basic => {
                let pair = format!("{}:{secret}", instance.login_user);
                format!("Basic {}", STANDARD.encode(pair))
            }
            WebAuth::Token => format!("token {secret}"),
        };
        Ok(Some(SecretText::new(value)))
    }
}
