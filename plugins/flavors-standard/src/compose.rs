//! Composition of a blueprint from a catalog entry and a request.

use crate::entry::Entry;
use crate::first_boot;
use wharf_guest::{Blueprint, BlueprintRequest, Error, Image, Readiness, ResourceType};

/// The kinds of engine that use these image names. The simulated engine runs nothing and accepts
/// any name.
const ENGINE_KINDS: [&str; 2] = ["docker", "simulated"];
/// Incus has images of containers only.
const INCUS: &str = "incus";

/// Composes the blueprint of an instance.
///
/// # Errors
/// [`Error::Invalid`] if the request needs a feature that the flavor lacks.
pub fn blueprint(entry: &Entry, request: &BlueprintRequest) -> Result<Blueprint, Error> {
    if !entry.runs_as(request.resource_type) {
        let why = format!("{} runs as a container only", entry.name);
        return Err(Error::invalid("flavor", why));
    }
    if request.s3_prefill && !entry.s3_prefill {
        let why = format!("{} does not support S3 prefill", entry.name);
        return Err(Error::invalid("s3_prefill_bucket", why));
    }
    let reference = image(entry, request);
    Ok(Blueprint {
        images: ENGINE_KINDS
            .into_iter()
            .chain((request.resource_type == ResourceType::Container).then_some(INCUS))
            .map(|kind| Image {
                engine_kind: kind.into(),
                reference: reference.clone(),
            })
            .collect(),
        files: first_boot::files(entry, request),
        environment: environment(request),
        command: Vec::new(),
        health: match entry.web {
            Some(web) => Readiness::Http(web.health.into()),
            None => Readiness::Ssh,
        },
        // Beside a page it is for the host alone, which offers a shell.
        ssh: true,
        web_port: entry.web.map(|web| web.port),
    })
}

/// The environment of a container: its flavor, for the greeting. That of a virtual machine: its size,
/// for the program that starts QEMU.
fn environment(request: &BlueprintRequest) -> Vec<(String, String)> {
    let size = &request.size;
    let sizes = [
        ("WHARF_VM_VCPUS", size.n_vcpus),
        ("WHARF_VM_MEM_MIB", size.mem_gib.saturating_mul(1024)),
        ("WHARF_VM_DISK_GIB", size.disk_size_gib),
    ];
    match request.resource_type {
        ResourceType::Container => vec![("WHARF_FLAVOR".to_owned(), request.flavor.clone())],
        ResourceType::Vm => sizes
            .map(|(name, n)| (name.to_owned(), n.to_string()))
            .into(),
    }
}

/// The image's reference. A driver may replace the prefix `localhost/wharf/` by that of a registry.
fn image(entry: &Entry, request: &BlueprintRequest) -> String {
    let family = match request.resource_type {
        ResourceType::Container => "",
        ResourceType::Vm => "vm-",
    };
    // Only instances with a GPU need the CUDA builds, which are gigabytes larger.
    let variant = if entry.gpu_aware && request.n_gpus > 0 {
        "-cuda"
    } else {
        ""
    };
    format!("localhost/wharf/{family}{}{variant}:1", entry.name)
}
