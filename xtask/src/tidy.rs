//! placeholder
/// x
pub fn run() -> anyhow::Result<()> {
    Ok(())
}
