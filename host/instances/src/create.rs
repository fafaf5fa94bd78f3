//! Creation: a blueprint from the flavor's provider, then one write with name, placement, claim, row,
//! event and ledger entry.

use super::content::{CONTENT, ContentRow};
use super::labels;
use super::private_ports::{PRIVATE_PAGES, web_is_private};
use super::quota;
use super::snapshots::{SOURCES, source};
use super::suspension;
use super::volumes::{Reader, name_volumes, new_mounts};
use super::{App, IdempotencyKey, InstanceView, SharedInventory};
use std::sync::Arc;
use wharf_db::{Changes, PROVISIONING_SPECS, ProvisioningSpec, Read as _, View};
use wharf_domain::backup::ContentOf;
use wharf_domain::blueprint::Blueprint;
use wharf_domain::driver::PluginError;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::flavor::{BlueprintRequest, Flavor};
use wharf_domain::ids::{Generation, InstanceId, NodeId, SnapshotId};
use wharf_domain::instance::{BilledSize, Instance, Intent, Progress, ResourceType};
use wharf_domain::money::Rates;
use wharf_domain::name::Name;
use wharf_domain::placement::{Placement, PlacementRequest};
use wharf_domain::quota::QuotaLimits;
use wharf_domain::request::CreateRequest;
use wharf_domain::secret::{Encrypted, InstanceSecrets, SecretKind, SecretText};
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::MountRequest;
use wharf_ground::caller::Caller;
use wharf_ground::random::Random;
use wharf_ground::vault::Vault;
use wharf_plugin::first_boot;

/// Letters and digits without look-alikes.
const ALPHABET: &[u8; 56] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";

/// 24 characters of 56 have 139 bits.
const PASSWORD_LENGTH: usize = 24;

/// Length of the token of a page in bytes.
const WEB_TOKEN: usize = 32;

/// Generated names to try before giving up.
const NAME_TRIES: u64 = 64;
/// Difference between the numbers of two generated names. It is odd, so that all numbers differ, and
/// large, so that the names differ in every part.
const NAME_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl App {
    /// Accepts an instance. The reconciler makes it after the answer. If an earlier request with the
    /// idempotency key created an instance, returns that one as it was then.
    pub async fn create(
        &self,
        caller: &Caller,
        request: CreateRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<InstanceView, Error> {
        let password = password(&self.random)?;
        let mut draft = self.draft(caller, request, password.clone()).await?;
        draft.key = key;
        let id = draft.id;
        let (inventory, defaults) = (self.inventory.clone(), self.config().quota.limits());
        let decided = self.change(caller, "instance.create", move |view| {
            draft.decide(view, &inventory, defaults)
        });
        let instance = decided.await.map_err(|error| self.with_freeing(error))?;
        if instance.id != id {
            return Ok(self.view(caller, instance));
        }
        self.nudge(caller, instance.id).await;
        Ok(self.view_with(caller, instance, password))
    }

    pub(super) async fn draft(
        &self,
        caller: &Caller,
        request: CreateRequest,
        password: SecretText,
    ) -> Result<InstanceDraft, Error> {
        let flavor = request.flavor;
        let login_user = self.config().login_user.clone();
        let has = |kind| request.secrets.get(kind).is_some();
        let private_page = flavor.web && web_is_private(&self.config());
        let blueprint = self
            .blueprint(BlueprintRequest {
                flavor: Arc::clone(&flavor),
                resource_type: request.resource_type,
                size: request.size,
                n_gpus: u32::from(request.gpu_model.is_some()),
                login_user: login_user.clone(),
                public_key: request.public_key.clone(),
                s3_prefill: has(SecretKind::S3PrefillBucket),
                ai: has(SecretKind::AiProviderApiKey),
                private_page,
            })
            .await?;
        // Ids in order of time keep the rows of one commit on few pages.
        let id = InstanceId(self.random.id(self.clock.system())?);
        let mut secrets = request.secrets;
        if flavor.web {
            let token = SecretText::new(self.random.text::<WEB_TOKEN>()?);
            secrets.0.push((SecretKind::WebToken, token));
        }
        let nodes = match &request.content {
            Some(of) => Some(self.content_nodes_seen().await.of_kind(&of.engine_kind)?),
            None => None,
        };
        Ok(InstanceDraft {
            id,
            vault: self.vault.clone(),
            password,
            placement: PlacementRequest {
                owner: caller.user,
                resource_type: request.resource_type,
                size: request.size,
                cpu_tier: request.cpu_tier,
                gpu_model: request.gpu_model.clone(),
                flavor: flavor.name.clone(),
                web: flavor.web,
                images: blueprint
                    .images
                    .iter()
                    .map(|i| i.reference.clone())
                    .collect(),
                nodes,
            },
            reader: caller.into(),
            volumes: request.volumes,
            source: request.source,
            content: request.content,
            rates: self
                .config()
                .rates
                .rates(request.cpu_tier, request.gpu_model.as_deref()),
            names: match request.name {
                Some(name) => Names::Given(name),
                None => Names::Generated(self.random.number()?),
            },
            flavor,
            login_user,
            blueprint,
            secrets,
            deadline: self.deadline(self.clock.now()),
            key: None,
            private_page,
        })
    }

    async fn blueprint(&self, request: BlueprintRequest) -> Result<Arc<Blueprint>, Error> {
        let plugins = self.plugins.clone();
        let is_container = request.resource_type == ResourceType::Container;
        let answer = self.call(async move { plugins.blueprint(&request).await });
        let blueprint = answer.await.map_err(flavor_error)?;
        let machine = self.config().machine_files();
        if machine.is_empty() || !is_container {
            return Ok(blueprint);
        }
        let mut blueprint = Arc::unwrap_or_clone(blueprint);
        let files = machine.iter().map(|(name, text)| first_boot(name, text));
        blueprint.files.extend(files);
        Ok(Arc::new(blueprint))
    }
}

enum Names {
    Given(Name),
    /// The first free generated name, beginning with this number's.
    Generated(u64),
}

/// An instance before its write.
pub(super) struct InstanceDraft {
    id: InstanceId,
    pub(super) placement: PlacementRequest,
    reader: Reader,
    volumes: Vec<MountRequest>,
    source: Option<SnapshotId>,
    content: Option<ContentOf>,
    pub(super) rates: Rates,
    names: Names,
    flavor: Arc<Flavor>,
    login_user: String,
    vault: Vault,
    password: SecretText,
    blueprint: Arc<Blueprint>,
    secrets: InstanceSecrets,
    deadline: Timestamp,
    key: Option<IdempotencyKey>,
    /// Whether it gets a page at a private port.
    private_page: bool,
}

impl InstanceDraft {
    pub(super) fn decide(
        &self,
        view: &View<'_>,
        inventory: &SharedInventory,
        defaults: QuotaLimits,
    ) -> Result<(Instance, Changes), Error> {
        let owner = self.placement.owner;
        IdempotencyKey::once(self.key.as_ref(), view, owner, || {
            self.decide_new(view, inventory, defaults)
        })
    }

    fn decide_new(
        &self,
        view: &View<'_>,
        inventory: &SharedInventory,
        defaults: QuotaLimits,
    ) -> Result<(Instance, Changes), Error> {
        suspension::check_user(view.rows, self.placement.owner)?;
        let name = self.name(view)?;
        let limits = quota::limits(view.rows, self.placement.owner, defaults)?;
        let mounts = new_mounts(view.rows, &self.reader, &self.volumes, &self.blueprint)?;
        let source = match self.source {
            Some(id) => Some(source(view.rows, id, &self.placement, mounts.node())?),
            None => None,
        };
        let bound_to = mounts
            .node()
            .or_else(|| source.as_ref().map(|row| row.node.clone()));
        let mut request = self.placement.clone();
        if let Some(node) = bound_to {
            let takes = |nodes: &Vec<NodeId>| nodes.contains(&node);
            let nodes = request.nodes.take();
            request.nodes = Some(match nodes {
                Some(nodes) if !takes(&nodes) => Vec::new(),
                _ => vec![node],
            });
        }
        let placement = quota::place(inventory, limits, &request)
            .map_err(|error| name_volumes(error, request.size, mounts.names()))?;
        let seq = view.rows.next_seq(self.placement.owner)?;
        // Encrypted within the write, so that a rotation of the key misses no new row.
        let password = self.vault.encrypt_text(self.id, &self.password)?;
        let instance = self.instance(name, seq, &placement, password, view);
        let provisioning_spec = ProvisioningSpec {
            hostname: instance.name.as_str().to_owned(),
            blueprint: Arc::clone(&self.blueprint),
            secrets: self.vault.encrypt_all(self.id, &self.secrets)?,
        };
        let changes = if self.private_page {
            Changes::none().put(&PRIVATE_PAGES, self.id, ())
        } else {
            Changes::none()
        };
        let changes = changes
            .put_claim(self.id, placement.claim)
            .put(&PROVISIONING_SPECS, self.id, provisioning_spec)
            .with(labels::assign(view.rows, &instance)?)
            .record(instance, view.now, wharf_domain::event::EventKind::Created);
        let changes = mounts.record(changes, view.now)?;
        let changes = match &source {
            Some(snapshot) => changes.put(&SOURCES, self.id, snapshot.into()),
            None => changes,
        };
        let content = self.content.clone().map(|of| ContentRow {
            of,
            has_come: false,
        });
        let changes = changes.set(&CONTENT, self.id, content);
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
                Err(Error::internal("no free name was generated"))
            }
        }
    }

    fn instance(
        &self,
        name: Name,
        seq: u64,
        placement: &Placement,
        password: Encrypted,
        view: &View<'_>,
    ) -> Instance {
        let claim = &placement.claim;
        let request = &self.placement;
        let vm = request.resource_type == ResourceType::Vm;
        Instance {
            id: self.id,
            seq,
            version: 0,
            owner: request.owner,
            name,
            resource_type: request.resource_type,
            flavor: self.flavor.name.clone(),
            cpu_tier: request.cpu_tier,
            size: request.size,
            gpu_model: request.gpu_model.clone(),
            gpus: claim.gpus.clone(),
            created_at: view.system,
            rates: self.rates,
            password,
            node: claim.node.clone(),
            ssh_host: placement.ssh_host.clone(),
            login_user: self.login_user.clone(),
            ssh_port: claim.ssh_port,
            ssh: self.flavor.ssh || vm,
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
            last_event_at: view.now,
            billed: BilledSize {
                parts: InstanceState::Provisioning.billed(),
                size: request.size,
            },
        }
    }
}

/// An invalid field is the user's error; any other failure of a provider is internal.
fn flavor_error(error: PluginError) -> Error {
    match error {
        PluginError::Invalid { field, message } => FieldErrors::one(&field, message).into(),
        PluginError::Busy | PluginError::RetryLater(_) => Error::Overloaded,
        other => Error::caused("flavor provider", other),
    }
}

pub(super) fn password(random: &Random) -> Result<SecretText, Error> {
    let mut text = String::with_capacity(PASSWORD_LENGTH);
    while text.len() < PASSWORD_LENGTH {
        let mut bytes = [0; 2 * PASSWORD_LENGTH];
        random.fill(&mut bytes)?;
        // Skipping bytes from 224 on, the last multiple of 56, makes all characters equally likely.
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
