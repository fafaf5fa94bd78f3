//! One attempt to get a certificate, which goes on with the order of an attempt that was cut off.

use super::files::{
    AcmeAccount, AcmeFiles, AcmeState, PendingOrder, PresentCertificate, TxtRecord,
};
use super::hook::{self, Task};
use super::{authority, renewal};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, ExternalAccountKey, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use wharf_config::{AcmeConfig, Domain};
use wharf_domain::error::chain;

/// The time in which the authority must look at a record, or issue a certificate.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(180));
const UNKNOWN_ACCOUNT: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

/// An error that leaves the pages without a new certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcmeError {
    #[error("the hook failed to {task}: {cause}")]
    Hook { task: &'static str, cause: String },
    #[error("cannot write {path}")]
    Keep { path: PathBuf, source: io::Error },
    #[error("the state cannot be written as JSON")]
    State(#[from] serde_json::Error),
    #[error("the authority")]
    Authority(#[from] Error),
    #[error("the authority refuses: {0}")]
    Refused(String),
    #[error("the authority has sent no usable certificate for *.{0}")]
    Unusable(Domain),
    #[error("setting `pages.acme.external_account.key_file`: {0}")]
    ExternalKey(String),
    #[error("no key can be made")]
    Key(#[from] rcgen::Error),
}

impl AcmeError {
    /// Whether the order has come to its end.
    fn is_final(&self) -> bool {
        match self {
            Self::Authority(error) => matches!(error, Error::Api(_)),
            Self::Refused(_) | Self::Unusable(_) | Self::Key(_) => true,
            Self::Hook { .. } | Self::Keep { .. } | Self::State(_) | Self::ExternalKey(_) => false,
        }
    }
}

/// Gets a certificate for all names below the domain, and keeps it.
pub(super) async fn attempt(
    acme: &AcmeConfig,
    domain: &Domain,
    files: &AcmeFiles,
    state: &mut AcmeState,
    replaced: Option<&PresentCertificate>,
) -> Result<PresentCertificate, AcmeError> {
    clean_up(acme, files, state).await;
    let issued = async {
        let account = account(acme, files).await?;
        let mut order = order(acme, domain, &account, files, state, replaced).await?;
        files.write(state)?;
        if order.state().status == OrderStatus::Pending {
            let proved = prove(acme, domain, files, state, &mut order).await;
            clean_up(acme, files, state).await;
            proved?;
        }
        let key = state.order.as_ref().map(|order| order.key.clone());
        let key = key.unwrap_or_default();
        if order.state().status == OrderStatus::Ready {
            let mut request = CertificateParams::new([format!("*.{domain}")])?;
            request.distinguished_name = DistinguishedName::new();
            let request = request.serialize_request(&KeyPair::from_pem(&key)?)?;
            order.finalize_csr(request.der()).await?;
        }
        let chain = order.poll_certificate(&PATIENCE).await?;
        let present = CertificateDer::from_pem_slice(chain.as_bytes()).ok();
        let present = present.and_then(PresentCertificate::of);
        let present = present.filter(|present| present.is_for(domain));
        let present = present.ok_or_else(|| AcmeError::Unusable(domain.clone()))?;
        files.write_certificate(&acme.directory, &key, &chain)?;
        Ok(present)
    };
    let issued = issued.await;
    if issued.as_ref().is_err_and(AcmeError::is_final) {
        state.order = None;
    }
    issued
}

/// The account of the settings, made at the first call.
pub(super) async fn account(acme: &AcmeConfig, files: &AcmeFiles) -> Result<Account, AcmeError> {
    let builder = Account::builder_with_http(authority::client()?);
    let external = acme.external_account.as_ref();
    let key_id = external.map(|account| account.key_id.clone());
    let contacts: Vec<String> = acme.contact.iter().map(|c| format!("mailto:{c}")).collect();
    let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let is_ours = |known: &AcmeAccount| known.directory == acme.directory && known.key_id == key_id;
    if let Some(known) = files.account().filter(is_ours) {
        let account = builder.from_credentials(known.credentials).await?;
        if known.contact != acme.contact
            && let Some(known) = files.account()
        {
            account.update_contacts(&contacts).await?;
            let contact = acme.contact.clone();
            files.write_account(&AcmeAccount { contact, ..known })?;
        }
        return Ok(account);
    }
    let key = external.map(|account| {
        let text = std::fs::read_to_string(&account.key_file).map_err(|e| e.to_string())?;
        let key = URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('='));
        let key = key.map_err(|_| "not base64url".to_owned())?;
        Ok(ExternalAccountKey::new(account.key_id.clone(), &key))
    });
    let key = key.transpose().map_err(AcmeError::ExternalKey)?;
    let new = NewAccount {
        contact: &contacts,
        terms_of_service_agreed: acme.accept_terms,
        only_return_existing: false,
    };
    let directory = acme.directory.clone();
    let (account, credentials) = builder.create(&new, directory, key.as_ref()).await?;
    files.write_account(&AcmeAccount {
        directory: acme.directory.clone(),
        contact: acme.contact.clone(),
        key_id,
        credentials,
    })?;
    Ok(account)
}

/// The order of an earlier attempt, or else a new one.
async fn order(
    acme: &AcmeConfig,
    domain: &Domain,
    account: &Account,
    files: &AcmeFiles,
    state: &mut AcmeState,
    replaced: Option<&PresentCertificate>,
) -> Result<Order, AcmeError> {
    let is_ours =
        |order: &PendingOrder| order.directory == acme.directory && order.domain == domain.as_str();
    if let Some(pending) = state.order.take().filter(is_ours)
        && let Ok(mut order) = account.order(pending.url.clone()).await
        && order.state().status != OrderStatus::Invalid
    {
        state.order = Some(pending);
        return Ok(order);
    }
    let names = [Identifier::Dns(format!("*.{domain}"))];
    let new = || NewOrder::new(&names);
    let id = replaced.and_then(|replaced| renewal::identifier(&replaced.der));
    let replacing = match id {
        Some(id) => account.new_order(&new().replaces(id)).await.ok(),
        None => None,
    };
    let order = match replacing {
        Some(order) => order,
        // Some authorities do not know the certificate that a new one replaces.
        None => match account.new_order(&new()).await {
            Err(Error::Api(problem)) if problem.r#type.as_deref() == Some(UNKNOWN_ACCOUNT) => {
                files.forget_account();
                return Err(Error::Api(problem).into());
            }
            order => order?,
        },
    };
    state.order = Some(PendingOrder {
        directory: acme.directory.clone(),
        domain: domain.to_string(),
        url: order.url().to_owned(),
        key: KeyPair::generate()?.serialize_pem(),
    });
    Ok(order)
}

/// Proves to the authority that the operator controls the domain.
async fn prove(
    acme: &AcmeConfig,
    domain: &Domain,
    files: &AcmeFiles,
    state: &mut AcmeState,
    order: &mut Order,
) -> Result<(), AcmeError> {
    let refused = |cause: &str| AcmeError::Refused(cause.to_owned());
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            _ => return Err(refused("the earlier proof has ended")),
        }
        let challenge = authorization.challenge(ChallengeType::Dns01);
        let mut challenge = challenge.ok_or_else(|| refused("it wants no proof by the DNS"))?;
        let value = challenge.key_authorization().dns_value();
        let name = format!("_acme-challenge.{domain}");
        let record = state.record.insert(TxtRecord { name, value });
        let (name, value) = (record.name.clone(), record.value.clone());
        files.write(state)?;
        hook::run(acme, files, Task::Present, (&name, &value)).await?;
        tokio::time::sleep(acme.propagation()).await;
        challenge.set_ready().await?;
    }
    let status = order.poll_ready(&PATIENCE).await;
    if matches!(status, Ok(OrderStatus::Ready)) {
        return Ok(());
    }
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let _ = authorization.refresh().await;
        let mut challenges = authorization.challenges.iter();
        if let Some(problem) = challenges.find_map(|challenge| challenge.error.as_ref()) {
            return Err(refused(&problem.to_string()));
        }
    }
    status?;
    Err(refused("the order is invalid"))
}

/// Takes the record away that an attempt has set.
pub(super) async fn clean_up(acme: &AcmeConfig, files: &AcmeFiles, state: &mut AcmeState) {
    if let Some(TxtRecord { name, value }) = state.record.take()
        && let Err(error) = hook::run(acme, files, Task::CleanUp, (&name, &value)).await
    {
        tracing::warn!("the TXT record {name} stays: {}", chain(&error));
    }
}
