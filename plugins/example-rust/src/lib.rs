//! A minimal flavor provider. Its flavor `team` is `base` with a team's own settings.
//! `plugins/README.md` explains how to build, test and install it.

use wharf_guest::{
    Blueprint, BlueprintRequest, Content, Error, File, Flavor, FlavorProvider, Image, Readiness,
    ResourceType, Secret, Size, WebAuth,
};

/// The image of `base`. Its init creates the login account from the files below.
const IMAGE: &str = "localhost/wharf/base:1";
/// The directory that the init reads at the first start.
const FIRST_BOOT: &str = "/etc/wharf/first-boot";
const GITCONFIG: &str = "[init]\n\tdefaultBranch = main\n";

/// The provider that the host loads.
#[derive(Debug)]
pub struct Example;

impl FlavorProvider for Example {
    fn flavors() -> Vec<Flavor> {
        vec![Flavor {
            name: "team".into(),
            description: "The clean system with our team's settings.".into(),
            resource_types: vec![ResourceType::Container],
            ssh: true,
            web: false,
            web_auth: WebAuth::None,
            s3_prefill: false,
            ai: false,
            gpu_aware: false,
            minimum: Size {
                n_vcpus: 1,
                mem_gib: 1,
                disk_size_gib: 10,
            },
        }]
    }

    fn blueprint(request: &BlueprintRequest) -> Result<Blueprint, Error> {
        let mut files = vec![
            file("/etc/gitconfig", 0o644, text(GITCONFIG)),
            file(
                &format!("{FIRST_BOOT}/user"),
                0o644,
                text(&request.login_user),
            ),
            // The provider never sees the password: the host inserts its hash here.
            file(
                &format!("{FIRST_BOOT}/password"),
                0o600,
                Content::SecretCrypt(Secret::Password),
            ),
        ];
        if let Some(key) = &request.public_key {
            files.push(file(
                &format!("{FIRST_BOOT}/authorized_keys"),
                0o644,
                text(key),
            ));
        }
        Ok(Blueprint {
            // One image for each kind of engine that supports the flavor.
            images: ["docker", "simulated"]
                .map(|kind| Image {
                    engine_kind: kind.into(),
                    reference: IMAGE.into(),
                })
                .into(),
            files,
            environment: vec![("TEAM".into(), "example".into())],
            command: Vec::new(),
            health: Readiness::Ssh,
            ssh: true,
            web_port: None,
        })
    }
}

wharf_guest::export!(Example: FlavorProvider);

fn file(path: &str, mode: u32, content: Content) -> File {
    File {
        path: path.into(),
        mode,
        uid: 0,
        gid: 0,
        content,
    }
}

fn text(line: &str) -> Content {
    Content::Bytes(format!("{}\n", line.trim_end()).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_never_in_clear() {
        let request = BlueprintRequest {
            flavor: "team".into(),
            resource_type: ResourceType::Container,
            size: Example::flavors().remove(0).minimum,
            n_gpus: 0,
            login_user: "user".into(),
            public_key: None,
            s3_prefill: false,
            ai: false,
            private_page: false,
        };
        let files = Example::blueprint(&request).map(|made| made.files);
        let clear = |file: &File| matches!(file.content, Content::Secret(_));
        assert!(files.is_ok_and(|files| files.len() == 3 && !files.iter().any(clear)));
    }
}
