//! Acts of users on their instances.

use super::volume::mount;
use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::setup::GPU;
use crate::sim::{EndOfProcess, Sim, selector};
use std::time::Duration;
use tokio::time::timeout;
use wharf_db::{Read as _, ReadRows};
use wharf_domain::capacity::{CpuTier, Size};
use wharf_domain::error::FieldErrors;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::{Instance, ResourceType};
use wharf_domain::name::Name;
use wharf_domain::request::{CreateRequest, UpdateRequest};
use wharf_domain::secret::InstanceSecrets;
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;
use wharf_instances::{
    IdempotencyKey, InstanceCondition, InstanceView, NewDisk, RecreateRequest, Selector,
};

acts![
    create 22,
    stop 10,
    restart 10,
    delete 9,
    change_size 12,
    rename 4,
    open_port 3,
    close_port 2,
    recreate 4,
    allow_moves 2,
];

/// Names that users give. They are few, so that names are taken.
const NAMES: [&str; 4] = ["web-one", "web-two", "job", "lab"];
pub const SIZES: [Size; 4] = [
    size(1, 1, 10),
    size(1, 2, 20),
    size(4, 6, 40),
    size(6, 8, 60),
];
/// The longest wait for a call about an instance.
const CALLED: Duration = Duration::from_secs(20);
const PORTS: [u16; 3] = [80, 443, 8080];

const fn size(n_vcpus: u32, mem_gib: u32, disk_size_gib: u32) -> Size {
    Size {
        n_vcpus,
        mem_gib,
        disk_size_gib,
    }
}

async fn create(sim: Sim, args: Args) {
    let (Some((who, caller)), Some(size)) = (args.user(&sim), args.of(1, &SIZES)) else {
        return;
    };
    let flavors = &sim.outside.setup.flavors;
    let flavor = flavors.get(usize::from(args.is_one_in(1, 3))).cloned();
    let Some(flavor) = flavor else {
        return;
    };
    let name = args.is_one_in(2, 2).then(|| args.of(2, &NAMES)).flatten();
    let is_vm = args.is_one_in(0, 5);
    let mounts: Vec<_> = (!is_vm && args.is_one_in(1, 2))
        .then(|| mount(&sim, &caller, args, None))
        .flatten()
        .into_iter()
        .collect();
    let with = mounts.first().map_or_else(String::new, |mount| {
        format!(" with volume {}", mount.volume)
    });
    let request = CreateRequest {
        name: name.and_then(|name| Name::parse(name).ok()),
        resource_type: if is_vm {
            ResourceType::Vm
        } else {
            ResourceType::Container
        },
        size,
        cpu_tier: CpuTier::GeneralPurpose,
        flavor,
        gpu_model: args.is_one_in(3, 6).then(|| GPU.to_owned()),
        public_key: None,
        secrets: InstanceSecrets::default(),
        volumes: mounts,
        source: None,
        content: None,
    };
    // One of three keys, so that requests are repeated, sometimes with another body.
    let key = args.number(2, 3);
    let body = [size.n_vcpus.to_le_bytes(), size.mem_gib.to_le_bytes()].concat();
    let key = args
        .is_one_in(2, 3)
        .then(|| IdempotencyKey::new(&format!("key-{key}"), &body));
    let kind = if is_vm { "vm" } else { "container" };
    let gpu = request.gpu_model.as_deref().unwrap_or_default();
    let words = format!(
        "creates a {kind} {}x{}x{} {gpu} {} named {name:?}{with}{}",
        size.n_vcpus,
        size.mem_gib,
        size.disk_size_gib,
        request.flavor.name,
        if key.is_some() {
            " with an idempotency key"
        } else {
            ""
        }
    );
    let ask = Ask::Create {
        owner: caller.user,
        size,
    };
    let created = sim.app.create(&caller, request, key);
    sim.ask(who, words, Some(ask), created, made_by(&sim)).await;
}

/// The instance of an answer to a creation. A repeated request gets the instance of the first one as it was, even if it
/// is gone since.
pub fn made_by(sim: &Sim) -> impl FnOnce(&InstanceView) -> Option<InstanceId> {
    move |view| {
        let id = view.instance.id;
        let is_gone = |rows: &ReadRows| Ok(rows.instance(id)?.is_none() && rows.was_made(id)?);
        let is_gone = sim.db.read(is_gone).unwrap_or_default();
        (!is_gone).then_some(id)
    }
}

/// The target of an act: an instance of the caller, the way to name it, and the condition of the request.
pub struct Target {
    pub who: &'static str,
    pub caller: Caller,
    pub instance: Instance,
    pub selector: Selector,
    pub condition: InstanceCondition,
}

/// An instance of any user, whose owner asks. Three of four are among those that `fits` accepts, if there are any.
pub fn target(sim: &Sim, args: Args, fits: impl Fn(&Instance) -> bool) -> Option<Target> {
    let mut instances = sim.all_instances();
    if instances.iter().any(&fits) && !args.is_one_in(0, 4) {
        instances.retain(fits);
    }
    let n = args.number(1, instances.len() as u64);
    let instance = instances.into_iter().nth(usize::try_from(n).ok()?)?;
    let (who, caller) = args.owner(sim, &instance)?;
    let version = instance.version;
    let condition = if args.is_one_in(2, 4) {
        InstanceCondition::new(move |view| Ok(view.instance.version == version))
    } else {
        InstanceCondition::default()
    };
    Some(Target {
        who,
        caller,
        selector: selector(&instance, args.is_one_in(1, 3)),
        instance,
        condition,
    })
}

pub fn runs(instance: &Instance) -> bool {
    instance.state() == InstanceState::Running
}

pub fn is_stopped(instance: &Instance) -> bool {
    matches!(
        instance.state(),
        InstanceState::ShutOff | InstanceState::Exited
    )
}

fn is_vm(instance: &Instance) -> bool {
    instance.resource_type == ResourceType::Vm
}

impl Target {
    pub fn words(&self, what: &str) -> String {
        format!(
            "{what} {} ({})",
            self.instance.id,
            self.instance.name.as_str()
        )
    }
}

async fn stop(sim: Sim, args: Args) {
    let Some(of) = target(&sim, args, runs) else {
        return;
    };
    let stopped = sim.app.stop(&of.caller, &of.selector, &of.condition);
    let ask = Ask::Stop(of.instance.id);
    sim.ask(of.who, of.words("stops"), Some(ask), stopped, |_| None)
        .await;
}

async fn restart(sim: Sim, args: Args) {
    let Some(of) = target(&sim, args, is_stopped) else {
        return;
    };
    let started = sim.app.restart(&of.caller, &of.selector, &of.condition);
    let ask = Ask::Start(of.instance.id);
    sim.ask(of.who, of.words("restarts"), Some(ask), started, |_| None)
        .await;
}

async fn delete(sim: Sim, args: Args) {
    let is_new = args.is_one_in(3, 3);
    // One in four comes within a call about the instance, and Wharf may end before the answer.
    let called = if args.is_one_in(3, 4) {
        timeout(CALLED, sim.outside.world.next_call()).await.ok()
    } else {
        None
    };
    let fits = |one: &Instance| match called {
        Some(id) => one.id == id,
        None => !(is_new && one.provisioned),
    };
    let Some(of) = target(&sim, args, fits) else {
        return;
    };
    let deleted = sim.app.delete(&of.caller, &of.selector, &of.condition);
    let ask = Ask::Delete(of.instance.id);
    sim.ask(of.who, of.words("deletes"), Some(ask), deleted, |()| None)
        .await;
    if called.is_some() && args.is_one_in(2, 3) {
        sim.outside.end.ask(EndOfProcess::Kill);
    }
}

async fn update(sim: Sim, of: Target, request: UpdateRequest, words: String) {
    let changes_size =
        request.n_vcpus.is_some() || request.mem_gib.is_some() || request.disk_size_gib.is_some();
    let ask = Ask::Change {
        id: of.instance.id,
        size: changes_size.then(|| request.size_over(of.instance.size)),
        name: request.name.as_ref().map(|name| name.as_str().to_owned()),
    };
    let changed = sim.app.update(
        &of.caller,
        &of.selector,
        &of.condition,
        request,
        FieldErrors::default(),
    );
    sim.ask(of.who, words, Some(ask), changed, |_| None).await;
}

async fn change_size(sim: Sim, args: Args) {
    let fits = |one: &Instance| runs(one) || is_stopped(one);
    let Some(of) = target(&sim, args, fits) else {
        return;
    };
    let before = of.instance.size;
    let others: Vec<_> = SIZES.into_iter().filter(|size| *size != before).collect();
    let Some(mut size) = args.of(3, &others) else {
        return;
    };
    // A disk cannot shrink. One request in four may ask for it.
    if !args.is_one_in(3, 4) {
        size.disk_size_gib = size.disk_size_gib.max(before.disk_size_gib);
    }
    let request = UpdateRequest {
        name: None,
        n_vcpus: Some(size.n_vcpus),
        mem_gib: Some(size.mem_gib),
        disk_size_gib: Some(size.disk_size_gib),
    };
    let words = format!(
        "{} to {}x{}x{}",
        of.words("resizes"),
        size.n_vcpus,
        size.mem_gib,
        size.disk_size_gib
    );
    update(sim, of, request, words).await;
}

async fn rename(sim: Sim, args: Args) {
    let (Some(of), Some(name)) = (target(&sim, args, |_| true), args.of(3, &NAMES)) else {
        return;
    };
    let request = UpdateRequest {
        name: Name::parse(name).ok(),
        ..UpdateRequest::default()
    };
    let words = format!("{} to {name}", of.words("renames"));
    update(sim, of, request, words).await;
}

async fn open_port(sim: Sim, args: Args) {
    let (Some(of), Some(port)) = (target(&sim, args, is_vm), args.of(3, &PORTS)) else {
        return;
    };
    let words = format!("{} for port {port}", of.words("opens"));
    let opened = sim
        .app
        .add_port(&of.caller, &of.selector, &of.condition, port);
    let ask = Ask::Ports(of.instance.id);
    sim.ask(of.who, words, Some(ask), opened, |_| None).await;
}

async fn close_port(sim: Sim, args: Args) {
    let (Some(of), Some(port)) = (target(&sim, args, is_vm), args.of(3, &PORTS)) else {
        return;
    };
    let words = format!("{} for port {port}", of.words("closes"));
    let closed = sim
        .app
        .remove_port(&of.caller, &of.selector, &of.condition, port);
    let ask = Ask::Ports(of.instance.id);
    sim.ask(of.who, words, Some(ask), closed, |_| None).await;
}

pub async fn recreate(sim: Sim, args: Args) {
    let Some(of) = target(&sim, args, |one| one.failed) else {
        return;
    };
    let disks = [NewDisk::Newest, NewDisk::Newest, NewDisk::Empty];
    let disk = args.of(2, &disks).unwrap_or(NewDisk::Empty);
    let wanted = RecreateRequest {
        disk,
        volumes: true,
    };
    let recreated = sim
        .app
        .recreate(&of.caller, &of.selector, &of.condition, wanted);
    let ask = Ask::Recreate(of.instance.id);
    let words = format!("{} with the disk {disk:?}", of.words("recreates"));
    sim.ask(of.who, words, Some(ask), recreated, |_| None).await;
}

async fn allow_moves(sim: Sim, args: Args) {
    let Some((who, caller)) = args.user(&sim) else {
        return;
    };
    let permitted = !args.is_one_in(1, 3);
    let words = format!("lets its instances be moved: {permitted}");
    let allowed = async { sim.app.allow_moves(&caller, permitted).await };
    sim.ask(who, words, None, allowed, |()| None).await;
}
