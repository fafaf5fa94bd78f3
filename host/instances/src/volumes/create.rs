//! `POST`: one write with name, node, claim, row, event and ledger entry. The reconciler makes the volume
//! after the answer.

use super::VolumeView;
use crate::idempotency::IdempotentRow as _;
use crate::kept::next_seq;
use crate::{App, IdempotencyKey, SharedInventory, quota, suspension};
use wharf_db::{Changes, Rows as _, VOLUME_NAMES, VOLUME_PLACES, View};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::{NodeId, UserId, VolumeId};
use wharf_domain::kept::{KeptEvent, KeptKind as _};
use wharf_domain::money::Rate;
use wharf_domain::quota::QuotaLimits;
use wharf_domain::volume::{OfVolume, Volume, VolumeRequest};
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

const NONE_MAKE_VOLUMES: Error = Error::NotApplicable(
    "no host of this service that takes new instances of this CPU tier keeps volumes",
);

const NONE_TAKE_CONTENT: Error = Error::NotApplicable(
    "no host of this service that takes new instances of this CPU tier takes this backup of a volume",
);

const LIMITS_BROKEN: Error = Error::NotApplicable(
    "no host of this service makes such a volume at present: one that does not hold the sizes of disks takes nothing \
     new until the operator has mended it",
);

/// A volume before its write.
#[derive(Debug, Clone)]
pub struct CreateVolume {
    pub request: VolumeRequest,
    pub key: Option<IdempotencyKey>,
}

impl App {
    /// Accepts a volume. If an earlier request with the idempotency key created a volume, returns that one as
    /// it was then.
    pub async fn create_volume(
        &self,
        caller: &Caller,
        create: CreateVolume,
    ) -> Result<VolumeView, Error> {
        let id = VolumeId(self.random.id(self.clock.system())?);
        let (owner, origin) = (caller.user, caller.origin());
        let (inventory, config) = (self.inventory.clone(), self.config());
        let rate = config.rates.rates(create.request.cpu_tier, None).disk;
        let defaults = config.quota.limits();
        let CreateVolume { request, key } = create;
        let among = match &request.content {
            Some(of) => Some(self.volume_nodes_seen().await.of_kind(&of.engine_kind)?),
            None => None,
        };
        let decide = move |view: &View<'_>| {
            suspension::check_user(view.rows, owner)?;
            let node = place(
                view,
                &inventory,
                owner,
                defaults,
                &request,
                among.as_deref(),
            )?;
            let volume = volume(view, id, owner, &request, rate, node)?;
            let changes = Changes::none()
                .record_kept(volume.clone(), view.now, KeptEvent::Created)
                .by(&origin);
            let (name, operation) = (volume.name.as_str(), "volume.create");
            let audited = record(view, &origin, operation, Some(owner), name, "creating");
            Ok((volume, changes.with(audited)))
        };
        let decided = self
            .db
            .write(move |view| IdempotencyKey::once(key.as_ref(), view, owner, || decide(view)));
        let volume = decided.await.map_err(|error| self.with_freeing(error))?;
        self.nodes.work_on_volumes(&volume.node);
        volume.new_view(self, caller)
    }
}

/// Chooses the node, within the owner's quota.
fn place(
    view: &View<'_>,
    inventory: &SharedInventory,
    owner: UserId,
    defaults: QuotaLimits,
    request: &VolumeRequest,
    among: Option<&[NodeId]>,
) -> Result<NodeId, Error> {
    let key = (owner, request.name.as_str().to_owned());
    if view.rows.get(&VOLUME_NAMES, key)?.is_some() {
        return Err(FieldErrors::one("name", "is already taken").into());
    }
    let limits = quota::limits(view.rows, owner, defaults)?;
    quota::kept(inventory, limits, owner, OfVolume::usage(request.size_gib))?;
    let tier = request.cpu_tier;
    match inventory.place_volume(request.size_gib, tier, among) {
        Ok(node) => Ok(node),
        Err(None) if inventory.has_broken_limits_for(tier, among) => Err(LIMITS_BROKEN),
        Err(None) if among.is_some() => Err(NONE_TAKE_CONTENT),
        Err(None) => Err(NONE_MAKE_VOLUMES),
        Err(Some(most)) => {
            let short = ("size_gib", request.size_gib.into(), most.into());
            Err(Error::Insufficient(vec![short].into()))
        }
    }
}

fn volume(
    view: &View<'_>,
    id: VolumeId,
    owner: UserId,
    request: &VolumeRequest,
    rate: Rate,
    node: NodeId,
) -> Result<Volume, Error> {
    let last = view.rows.last_under(&VOLUME_PLACES, &())?;
    let row = Volume {
        id,
        seq: next_seq(last.map(|(last, _)| last), view.now),
        owner,
        name: request.name.clone(),
        size_gib: request.size_gib,
        cpu_tier: request.cpu_tier,
        created_at: view.system,
        rate,
        node,
        deleted: false,
        made: false,
        failure: None,
        events: 0,
        ledger_entries: 0,
        last_event_at: view.now,
        billed: false,
        of: OfVolume {
            copy: None,
            content: request.content.clone(),
        },
    };
    Ok(row)
}
