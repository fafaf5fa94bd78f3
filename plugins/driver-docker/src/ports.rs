//! Open ports on a virtual machine's public address.

use crate::context::Context;
use crate::found;
use wharf_guest::{During, Error, ResourceType, Target};

/// Delay until a container that was just started is up, ms.
const AGAIN_MS: u32 = 200;

/// See the `ports` interface.
pub fn set(ctx: &Context, target: &Target) -> Result<(), Error> {
    if target.resource_type != ResourceType::Vm {
        return Err(Error::Unsupported("ports of a container".into()));
    }
    let found = found::find(ctx, &target.tag, false)?.ok_or(Error::NotFound)?;
    if !found.is_up() {
        return Err(Error::RetryLater(AGAIN_MS));
    }
    let ended = ctx
        .api
        .set_ports(&found.name)?
        .during("setting the ports")?;
    match ended.code {
        0 => Ok(()),
        code => Err(Error::Other(format!(
            "setting the ports: exit code {code}: {}",
            ended.output
        ))),
    }
}
