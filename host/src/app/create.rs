//! `POST /api/instance/`: validated request → blueprint → one write that places, claims, names and
//! bills.

use super::clock::now;
use super::vault::fill;
use super::{App, Caller, InstanceView, Nudge};
use crate::db::{Change, Changes, Detail, Read, View};
use crate::domain::blueprint::Blueprint;
use crate::domain::driver::PluginError;
use crate::domain::error::{Error, FieldErrors};
use crate::domain::flavor::BlueprintRequest;
use crate::domain::ids::{Generation, InstanceId, UserId};
use crate::domain::instance::{Instance, Intent, Progress, ResourceType};
use crate::domain::money::Rates;
use crate::domain::name::Name;
use crate::domain::request::CreateRequest;
use crate::domain::secret::{Sealed, SecretKind, SecretText};
use crate::domain::state::InstanceState;
use crate::domain::time::Timestamp;
use crate::placement::{Placement, PlacementRequest};
use std::sync::Arc;

/// Letters and digits that are not mistaken for each other.
const ALPHABET: &[u8; 56] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";

/// 24 of 56 characters: 139 bits.
const PASSWORD_LENGTH: usize = 24;

/// Generated names to try before giving up.
const NAME_TRIES: u64 = 64;
/// From the number of one to that of the next: odd, so that all differ, and large, so that they differ
/// in every part of the name.
const NAME_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl App {
    /// Accepts an instance; it is made behind the answer.
    pub async fn create(
        &self,
        caller: &Caller,
        request: CreateRequest,
    ) -> Result<InstanceView, Error> {
        let password = password()?;
        let draft = self.draft(caller.user, request, &password).await?;
        let instance = self.db.write(move |view| draft.decide(view)).await?;
        self.nudge(Nudge::New(instance.id));
        Ok(self.view_with(caller, instance, password))
    }

    async fn draft(
        &self,
        owner: UserId,
        request: CreateRequest,
        password: &SecretText,
    ) -> Result<Draft, Error> {
        let flavor = self
            .flavors()
            .iter()
            .find(|f| f.name == request.flavor)
            .ok_or_else(|| FieldErrors::one("flavor", "unknown flavor"))?;
        let (ssh, web) = (flavor.ssh, flavor.web);
        let login_user = self.config.login_user.clone();
        let has = |kind| request.secrets.get(kind).is_some();
        let blueprint = self
            .blueprint(BlueprintRequest {
                flavor: request.flavor.clone(),
                resource_type: request.resource_type,
                size: request.size,
                n_gpus: u32::from(request.gpu_model.is_some()),
                login_user: login_user.clone(),
                public_key: request.public_key.clone(),
                s3_prefill: has(SecretKind::S3PrefillBucket),
                ai: has(SecretKind::AiProviderApiKey),
            })
            .await?;
        // In the order of time, so that the rows of creates that share a commit share pages.
        let id = InstanceId(uuid::Uuid::now_v7());
        Ok(Draft {
            id,
            password: self.vault.seal_text(id, password)?,
            ask: PlacementRequest {
                owner,
                resource_type: request.resource_type,
                size: request.size,
                cpu_tier: request.cpu_tier,
                gpu_model: request.gpu_model.clone(),
                web,
            },
            rates: self
                .config
                .rates
                .rates(request.cpu_tier, request.gpu_model.as_deref()),
            names: match request.name {
                Some(name) => Names::Given(name),
                None => Names::Generated(random()?),
            },
            flavor: request.flavor,
            ssh,
            login_user,
            detail: Detail {
                hostname: String::new(),
                blueprint,
                secrets: self.vault.seal_all(id, &request.secrets)?,
            },
            now: now(),
            deadline: self.deadline(now()),
        })
    }

    async fn blueprint(&self, request: BlueprintRequest) -> Result<Arc<Blueprint>, Error> {
        if let Some(given) = self.plugins.given(&request) {
            return Ok(given);
        }
        let plugins = self.plugins.clone();
        let asked = self.call(async move {
            let blueprint = plugins.blueprint(&request).await?;
            plugins.remember(&request, &blueprint);
            Ok(blueprint)
        });
        asked.await.map_err(flavor_error)
    }
}

enum Names {
    Given(Name),
    /// Any that is free, the first to try being the one of this number.
    Generated(u64),
}

/// Everything that is decided before the write.
struct Draft {
    id: InstanceId,
    ask: PlacementRequest,
    rates: Rates,
    names: Names,
    flavor: String,
    ssh: bool,
    login_user: String,
    password: Sealed,
    detail: Detail,
    now: Timestamp,
    deadline: Timestamp,
}

impl Draft {
    fn decide(&self, view: &View<'_>) -> Result<(Instance, Changes), Error> {
        let name = self.name(view)?;
        let placement = view
            .inventory
            .place(&self.ask)
            .map_err(Error::Insufficient)?;
        let seq = view.rows.next_seq()?;
        let instance = self.instance(name, seq, &placement);
        let detail = Detail {
            hostname: instance.name.as_str().to_owned(),
            ..self.detail.clone()
        };
        let changes = Changes::none()
            .with(Change::NextSeq(seq + 1))
            .with(Change::PutClaim(self.id, placement.claim))
            .with(Change::PutDetail(self.id, Box::new(detail)))
            .record(instance, self.now, crate::domain::event::What::Created);
        Ok((changes.instance()?, changes))
    }

    fn name(&self, view: &View<'_>) -> Result<Name, Error> {
        let free = |name: &Name| Ok::<_, Error>(view.rows.id_of_name(name.as_str())?.is_none());
        match &self.names {
            Names::Given(name) if free(name)? => Ok(name.clone()),
            Names::Given(_) => Err(FieldErrors::one("name", "is already taken").into()),
            Names::Generated(first) => {
                for n in 0..NAME_TRIES {
                    let name = Name::generate(first.wrapping_add(n.wrapping_mul(NAME_STEP)));
                    if free(&name)? {
                        return Ok(name);
                    }
                }
                Err(Error::internal("no free name was generated".to_owned()))
            }
        }
    }

    fn instance(&self, name: Name, seq: u64, placement: &Placement) -> Instance {
        let claim = &placement.claim;
        let vm = self.ask.resource_type == ResourceType::Vm;
        Instance {
            id: self.id,
            seq,
            owner: self.ask.owner,
            name,
            resource_type: self.ask.resource_type,
            flavor: self.flavor.clone(),
            cpu_tier: self.ask.cpu_tier,
            size: self.ask.size,
            gpu_model: self.ask.gpu_model.clone(),
            gpus: claim.gpus.clone(),
            created_at: self.now,
            rates: self.rates,
            password: self.password.clone(),
            node: claim.node.clone(),
            ssh_host: placement.ssh_host.clone(),
            login_user: self.login_user.clone(),
            ssh_port: claim.ssh_port,
            ssh: self.ssh || vm,
            web_port: claim.web_port,
            lan_ipv4: claim.lan_ipv4,
            lan_subnet: claim.lan_subnet,
            public_ipv4: claim.public_ipv4,
            wan_ports: if vm { vec![22] } else { Vec::new() },
            intent: Intent::Run,
            generation: Generation(1),
            incarnation: 1,
            provisioned: false,
            failed: false,
            progress: Progress::Pending,
            deadline: Some(self.deadline),
            resize: None,
            events: 0,
            ledger_entries: 0,
            last_event_at: self.now,
            billed: (InstanceState::Provisioning.billed(), self.ask.size),
        }
    }
}

/// A provider's objection to a field is the user's; anything else is ours.
fn flavor_error(error: PluginError) -> Error {
    match error {
        PluginError::Invalid { field, message } => FieldErrors::one(&field, message).into(),
        PluginError::Busy | PluginError::RetryLater(_) => Error::Overloaded,
        other => Error::internal(format!("flavor provider: {other}")),
    }
}

fn random() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn password() -> Result<SecretText, Error> {
    let mut text = String::with_capacity(PASSWORD_LENGTH);
    while text.len() < PASSWORD_LENGTH {
        let mut bytes = [0; 2 * PASSWORD_LENGTH];
        fill(&mut bytes)?;
        // Bytes past the last whole multiple are skipped, so that each character is as likely.
        let even = bytes.iter().filter(|b| usize::from(**b) < 224);
        let characters = even.filter_map(|b| ALPHABET.get(usize::from(*b) % ALPHABET.len()));
        text.extend(
            characters
                .take(PASSWORD_LENGTH - text.len())
                .map(|b| char::from(*b)),
        );
    }
    Ok(SecretText::new(text))
}
