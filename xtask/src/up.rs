//! placeholder
use crate::engine;
/// x
#[derive(clap::Args)]
pub struct Options {}
/// x
pub fn run(_: &Options) -> anyhow::Result<()> {
    Ok(())
}
/// x
pub fn engine_options() -> anyhow::Result<engine::Options> {
    Ok(engine::Options {
        dir: crate::workspace::root().join(".wharf/engine"),
        disk_gib: 20,
        disposable: false,
    })
}
