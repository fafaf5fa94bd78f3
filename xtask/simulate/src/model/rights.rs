//! Who may reach what, and how much an owner may hold.

use super::kept::claimed_on;
use super::{Ask, Look, Model, Wrong, check, failed};
use std::collections::BTreeMap;
use wharf_db::Rows as _;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::instance::{Intent, ResourceType};
use wharf_instances::Selector;
use wharf_instances::labels::LABELS;
use wharf_instances::quota;

/// The holdings of an owner: instances, vCPUs, RAM, disk, GPUs, ports, volumes and their GiB, snapshots
/// and theirs.
pub type Holding = [u64; 10];

/// The limits of an owner.
pub type Limits = [Option<u64>; 10];

impl Model {
    pub(super) fn check_rights(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        self.check_labels(look)?;
        self.check_tunnels(look)?;
        self.check_quota(look)?;
        self.check_nodes(look)
    }

    /// A label belongs to one owner for good. It leads to the owner's living instances only, and other visitors need a
    /// share that was asked for.
    fn check_labels(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let read = look
            .app
            .db()
            .read(|rows| rows.all(&LABELS)?.collect::<Result<Vec<_>, _>>());
        for (label, (), row) in read.map_err(|error| failed(&error))? {
            let owner = *self.labels.entry(label.clone()).or_insert(row.owner);
            check(owner == row.owner, || {
                format!("the label {label} has another owner")
            })?;
            let page = look
                .app
                .named_page(&label)
                .map_err(|error| failed(&error))?;
            let Some(page) = page else { continue };
            let of = &page.instance;
            check(of.owner == owner && of.intent != Intent::Delete, || {
                format!(
                    "the label {label} leads to {}, which is another owner's or gone",
                    of.id
                )
            })?;
            let share = Ask::Share {
                id: of.id,
                port: page.port,
                shared: true,
            };
            let is_shared =
                self.shares.contains(&(of.id, page.port)) || self.is_asked(|asked| *asked == share);
            let visitors = look.users.iter().filter(|user| user.user != owner);
            let visitors = visitors
                .map(|user| Some((user.user, &*user.email)))
                .chain([None]);
            for visitor in visitors {
                let shared = look
                    .app
                    .is_shared_with(&page, visitor)
                    .map_err(|error| failed(&error))?;
                check(!shared || is_shared, || {
                    format!("the label {label} is open to {visitor:?} without a share")
                })?;
            }
        }
        let instances = &self.instances;
        self.shares.retain(|(id, _)| instances.contains_key(id));
        Ok(())
    }

    /// Only its owner opens a tunnel to an instance.
    fn check_tunnels(&self, look: &Look<'_>) -> Result<(), Wrong> {
        for (id, known) in &self.instances {
            for user in look.users {
                let opened = look.app.check_tunnel(user, &Selector::Id(*id));
                let is_found = !matches!(opened, Err(Error::NotFound));
                let may = user.user == known.row.owner && known.row.intent != Intent::Delete;
                check(may || !is_found, || {
                    format!("{id}: a tunnel of {}", user.email)
                })?;
            }
        }
        Ok(())
    }

    /// What an owner holds grows only within the quota.
    fn check_quota(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let mut holdings: BTreeMap<UserId, Holding> = BTreeMap::new();
        for known in self.instances.values() {
            let Some(claim) = &known.claim else { continue };
            let compute = u64::from(claim.compute);
            let is_vm = known.row.resource_type == ResourceType::Vm;
            let open = if is_vm {
                known.row.wan_ports.len() as u64
            } else {
                0
            };
            let parts = [
                1,
                compute * u64::from(claim.size.n_vcpus),
                compute * u64::from(claim.size.mem_gib),
                u64::from(claim.size.disk_size_gib),
                compute * claim.gpus.len() as u64,
                1 + u64::from(claim.web_port.is_some()) + open,
                0,
                0,
            ];
            let sum = holdings.entry(claim.owner).or_default();
            sum.iter_mut()
                .zip(parts)
                .for_each(|(sum, part)| *sum += part);
        }
        for row in self.volumes.values().map(|known| &known.row) {
            let [.., count, gib, _, _] = holdings.entry(row.owner).or_default();
            *count += u64::from(!row.deleted);
            *gib += u64::from(!row.deleted) * u64::from(row.size_gib);
        }
        for row in self.snapshots.values().map(|known| &known.row) {
            let [.., count, gib] = holdings.entry(row.owner).or_default();
            *count += u64::from(!row.deleted);
            *gib += u64::from(!row.deleted) * u64::from(row.size_gib);
        }
        let defaults = look.app.config().quota.limits();
        for user in look.users {
            let owner = user.user;
            let limits = look
                .app
                .db()
                .read(|rows| quota::limits(rows, owner, defaults));
            let limits = limits.map_err(|error| failed(&error))?.fields();
            let holding = holdings.get(&owner).copied().unwrap_or_default();
            let now = limits.map(|(_, limit)| limit);
            let (held_before, limits_before) = self
                .holdings
                .insert(owner, (holding, now))
                .unwrap_or((Holding::default(), now));
            // A limit may have become smaller right after the change, in one commit with it.
            let is_within = |held: u64, limit: Option<u64>| limit.is_none_or(|limit| held <= limit);
            for (n, (field, limit)) in limits.into_iter().enumerate() {
                let [held, before] = [holding, held_before].map(|of| of.get(n).copied());
                let (held, before) = (held.unwrap_or_default(), before.unwrap_or_default());
                let earlier = limits_before.get(n).copied().flatten();
                let within = held <= before || is_within(held, limit) || is_within(held, earlier);
                check(within, || {
                    format!("user {} holds {held} {field}, above {limit:?}", owner.0)
                })?;
            }
        }
        Ok(())
    }

    /// The claims on a node fit it.
    fn check_nodes(&self, look: &Look<'_>) -> Result<(), Wrong> {
        look.world.truth(|truth| {
            for node in truth.nodes() {
                let here = self
                    .instances
                    .values()
                    .filter_map(|known| known.claim.as_ref());
                let here = here.filter(|claim| claim.node == node.setup.name);
                let name = &node.setup.name;
                let kept = claimed_on(&self.volumes, name) + claimed_on(&self.snapshots, name);
                let mut sum = [0, 0, kept];
                for claim in here {
                    let compute = u32::from(claim.compute);
                    sum[0] += compute * claim.size.n_vcpus;
                    sum[1] += compute * claim.size.mem_gib;
                    sum[2] += claim.size.disk_size_gib;
                }
                let of = node.setup.capacity;
                let fits =
                    sum[0] <= of.n_vcpus && sum[1] <= of.mem_gib && sum[2] <= of.disk_size_gib;
                check(fits, || {
                    format!("the claims on node {} are {sum:?}", node.setup.name)
                })?;
            }
            Ok(())
        })
    }
}
