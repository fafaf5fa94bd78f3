//! Calls of the driver, each with the scope that the host gives it.

use crate::fake::Fake;
use driver_docker::context::Context;
use driver_docker::{
    content, delete, ensure, grow, identity, inspect, lifecycle, lxcfs, network, ports, probe,
    resize, snapshots, stats, survey,
};
use wharf_guest::fake::Host;
use wharf_guest::{
    Error, Health, Node, Observed, ObservedSnapshot, Report, SnapshotReport, Source, Spec,
    Surroundings, Tag, Target, Usage,
};

const FILE: &str = include_str!("../../requests.toml");

/// A node with a fake engine.
pub struct Calls<'a> {
    node: &'a Node,
    fake: &'a Fake,
}

impl<'a> Calls<'a> {
    pub fn new(node: &'a Node, fake: &'a Fake) -> Self {
        Self { node, fake }
    }

    pub fn ensure(&self, spec: &Spec) -> Result<Report, Error> {
        self.create(spec, |ctx| ensure::ensure(ctx, spec))
    }

    pub fn grow(&self, spec: &Spec) -> Result<Report, Error> {
        self.create(spec, |ctx| grow::grow(ctx, spec))
    }

    pub fn offer(&self, target: &Target) -> Result<Report, Error> {
        self.change(target, |ctx| content::offer(ctx, target))
    }

    pub fn fetch(&self, spec: &Spec) -> Result<Report, Error> {
        self.create(spec, |ctx| content::fetch(ctx, spec))
    }

    pub fn send(&self, of: &Source) -> Result<SnapshotReport, Error> {
        let host = Host::send(FILE, self.node, of, self.fake);
        self.call(&host, content::send)
    }

    pub fn start(&self, target: &Target) -> Result<Report, Error> {
        self.change(target, |ctx| lifecycle::start(ctx, target))
    }

    pub fn stop(&self, target: &Target, grace_ms: u32) -> Result<Report, Error> {
        self.change(target, |ctx| lifecycle::stop(ctx, target, grace_ms))
    }

    pub fn resize(&self, target: &Target) -> Result<Report, Error> {
        self.change(target, |ctx| resize::resize(ctx, target))
    }

    pub fn delete(&self, target: &Target) -> Result<Report, Error> {
        self.change(target, |ctx| delete::delete(ctx, target))
    }

    pub fn set_ports(&self, target: &Target) -> Result<(), Error> {
        self.change(target, |ctx| ports::set(ctx, target))
    }

    pub fn create_network(&self, target: &Target) -> Result<(), Error> {
        self.change(target, |ctx| network::create(ctx, &target.network))
    }

    pub fn inspect(&self, tag: &Tag) -> Result<Report, Error> {
        self.read(tag, |ctx| inspect::inspect(ctx, tag))
    }

    pub fn stats(&self, tag: &Tag) -> Result<Usage, Error> {
        self.read(tag, |ctx| stats::stats(ctx, tag, true))
    }

    pub fn list(&self) -> Result<Vec<Observed>, Error> {
        self.call(&Host::node(FILE, self.node, self.fake), inspect::list)
    }

    pub fn take(&self, target: &Target, id: &str) -> Result<SnapshotReport, Error> {
        let host = Host::take(FILE, self.node, target, id, self.fake);
        self.call(&host, |ctx| snapshots::take(ctx, target))
    }

    pub fn drop_snapshot(&self, of: &Source) -> Result<SnapshotReport, Error> {
        let host = Host::drop(FILE, self.node, of, self.fake);
        self.call(&host, |ctx| snapshots::drop(ctx, &of.instance))
    }

    pub fn restore(&self, spec: &Spec, id: &str) -> Result<Report, Error> {
        let host = Host::restore(FILE, self.node, spec, id, self.fake);
        self.call(&host, |ctx| snapshots::restore(ctx, spec, id))
    }

    pub fn list_snapshots(&self) -> Result<Vec<ObservedSnapshot>, Error> {
        self.call(&Host::node(FILE, self.node, self.fake), snapshots::list)
    }

    pub fn probe(&self) -> Result<Health, Error> {
        self.call(&Host::node(FILE, self.node, self.fake), probe::probe)
    }

    pub fn identify(&self) -> Result<Option<String>, Error> {
        self.call(&Host::node(FILE, self.node, self.fake), identity::identify)
    }

    pub fn mark(&self, mark: &str) -> Result<(), Error> {
        self.call(
            &Host::mark(FILE, self.node, mark, self.fake),
            identity::mark,
        )
    }

    pub fn look(&self, images: &[String]) -> Result<Surroundings, Error> {
        let host = Host::look(FILE, self.node, images, self.fake);
        self.call(&host, |ctx| survey::look(ctx, images))
    }

    pub fn is_shown(&self) -> Result<Option<bool>, Error> {
        self.call(
            &Host::look(FILE, self.node, &[], self.fake),
            lxcfs::is_shown,
        )
    }

    fn create<T>(
        &self,
        spec: &Spec,
        run: impl FnOnce(&Context<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.call(&Host::create(FILE, self.node, spec, self.fake), run)
    }

    fn change<T>(
        &self,
        target: &Target,
        run: impl FnOnce(&Context<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.call(&Host::change(FILE, self.node, target, self.fake), run)
    }

    fn read<T>(
        &self,
        tag: &Tag,
        run: impl FnOnce(&Context<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.call(&Host::read(FILE, self.node, tag, self.fake), run)
    }

    fn call<T>(
        &self,
        host: &Host<'_>,
        run: impl FnOnce(&Context<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        run(&Context::new(self.node, host)?)
    }
}
