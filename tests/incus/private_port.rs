//! The private SSH port of a page, as a proxy device.

use super::context::IncusContext;
use crate::private_port::{FLAVOR, is_for_wharf_alone};
use anyhow::{Context as _, Result, ensure};
use std::net::Ipv4Addr;

/// The member of this test.
const MEMBER: usize = 1;

/// The settings with a private address, and the first port.
fn settings(context: &IncusContext, private: Ipv4Addr) -> Result<(String, u16)> {
    let settings = context.settings_of(&[MEMBER], FLAVOR);
    let port = settings.split("[ssh_ports]\nfrom = ").nth(1);
    let port = port.and_then(|rest| rest.lines().next()?.parse().ok());
    let public = &context.member(MEMBER).address;
    let private =
        format!("\nprobe_host = \"{public}\"\nprivate_address = \"{private}\"\nsettings = {{");
    Ok((
        settings.replace("\nsettings = {", &private),
        port.context("no port")?,
    ))
}

/// The loopback takes no rule of Incus, so it is another address of the member.
pub fn of_a_page(context: &IncusContext) -> Result<()> {
    let public: Ipv4Addr = context.member(MEMBER).address.parse()?;
    let private = Ipv4Addr::from(u32::from(public) + 100);
    inside(
        context,
        "ip",
        &["address", "add", &format!("{private}/24"), "dev", "eth0"],
    )?;
    let (settings_of_node, port) = settings(context, private)?;
    let [private, public] = [private.to_string(), public.to_string()];
    is_for_wharf_alone(&settings_of_node, port, &private, &[&public])
}

/// Runs a program in the member.
fn inside(context: &IncusContext, program: &str, arguments: &[&str]) -> Result<String> {
    let cluster = context.cluster();
    let member = cluster.members().get(MEMBER).context("no member")?;
    let mut command = member.inside(program);
    drop(cluster);
    let output = command.args(arguments).output()?;
    ensure!(output.status.success(), "{program}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}
