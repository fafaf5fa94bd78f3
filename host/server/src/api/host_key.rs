//! `GET /api/instance/{uuid}/host-key/`.

use super::{EndpointReply, EndpointRequest, EndpointResult, render};
use serde::Serialize;
use wharf_instances::Selector;

/// One host key.
#[derive(Serialize)]
struct HostKeyWire {
    r#type: String,
    fingerprint: String,
    public_key: String,
}

/// The SSH host keys of an instance.
pub fn list(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let keys = api.app.host_keys(caller, selector)?.into_iter();
    let keys: Vec<HostKeyWire> = keys
        .map(|key| HostKeyWire {
            r#type: key.algorithm,
            fingerprint: key.fingerprint,
            public_key: key.public_key,
        })
        .collect();
    Ok(EndpointReply::Done(render(&keys, 256)?))
}
