//! The flavors match the specification, and every blueprint is complete.

use flavors_standard::Standard;
use std::collections::HashSet;
use wharf_guest::{
    Blueprint, BlueprintRequest, Content, Error, FlavorProvider, Readiness, ResourceType, Secret,
    Size, WebAuth,
};

fn request(flavor: &str) -> BlueprintRequest {
    BlueprintRequest {
        flavor: flavor.into(),
        resource_type: ResourceType::Container,
        size: Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 10,
        },
        n_gpus: 0,
        login_user: "user".into(),
        public_key: Some("ssh-ed25519 AAAA someone@somewhere".into()),
        s3_prefill: false,
        ai: true,
        private_page: false,
    }
}

fn names(keep: impl Fn(&wharf_guest::Flavor) -> bool) -> HashSet<String> {
    Standard::flavors()
        .into_iter()
        .filter(keep)
        .map(|flavor| flavor.name)
        .collect()
}

fn set<const N: usize>(names: [&str; N]) -> HashSet<String> {
    names.map(String::from).into()
}

fn has(blueprint: &Blueprint, name: &str) -> bool {
    blueprint
        .files
        .iter()
        .any(|file| file.path == format!("/etc/wharf/first-boot/{name}"))
}

#[test]
fn all_eight_flavors_exist() {
    assert_eq!(
        names(|_| true),
        set([
            "base",
            "datascience",
            "marimo",
            "datasciencemarimo",
            "jupyterlab",
            "rserver",
            "rgeospatial",
            "genomics",
        ])
    );
}

#[test]
fn flags_match_the_specification() {
    assert_eq!(names(|f| f.ssh), set(["base", "datascience", "genomics"]));
    assert_eq!(
        names(|f| f.s3_prefill),
        set(["rserver", "marimo", "jupyterlab"])
    );
    let vm = |f: &wharf_guest::Flavor| f.resource_types.contains(&ResourceType::Vm);
    assert_eq!(names(vm), set(["base"]));
    assert!(
        names(|f| f.ssh == f.web).is_empty(),
        "every flavor has either SSH or a web page"
    );
}

#[test]
fn every_flavor_composes_with_a_health_check_on_the_users_path() {
    for flavor in Standard::flavors() {
        let blueprint = Standard::blueprint(&request(&flavor.name)).unwrap();
        assert!(
            blueprint.ssh,
            "{}: every image has an SSH server",
            flavor.name
        );
        assert_eq!(blueprint.web_port.is_some(), flavor.web);
        assert_eq!(matches!(blueprint.health, Readiness::Ssh), flavor.ssh);
        let reference = format!("localhost/wharf/{}:1", flavor.name);
        assert!(
            blueprint
                .images
                .iter()
                .all(|image| image.reference == reference)
        );
        assert!(has(&blueprint, "user") && has(&blueprint, "password"));
        assert!(has(&blueprint, "authorized_keys"));
        let takes_token = flavor.web_auth == WebAuth::Token;
        assert_eq!(has(&blueprint, "web_token"), takes_token);
        assert_eq!(has(&blueprint, "ai_provider_api_key"), flavor.ai);
    }
}

#[test]
fn every_page_takes_a_credential_of_the_host() {
    let taking = |auth| names(move |f| f.web_auth == auth);
    assert_eq!(
        taking(WebAuth::Token),
        set(["jupyterlab", "rserver", "rgeospatial"])
    );
    assert_eq!(
        taking(WebAuth::Bearer),
        set(["marimo", "datasciencemarimo"])
    );
}

#[test]
fn a_private_page_with_one_secret_never_has_the_password() {
    let secret = |flavor: &str, private_page| {
        let blueprint = Standard::blueprint(&BlueprintRequest {
            private_page,
            ..request(flavor)
        });
        let mut files = blueprint.unwrap().files.into_iter();
        let file = files.find(|file| file.path.ends_with("/web_password"));
        file.unwrap().content
    };
    let is_password = |content| matches!(content, Content::Secret(Secret::Password));
    let is_token = |content| matches!(content, Content::Secret(Secret::WebToken));
    for flavor in ["marimo", "datasciencemarimo"] {
        assert!(is_password(secret(flavor, false)), "{flavor}");
        assert!(is_token(secret(flavor, true)), "{flavor}");
    }
    // JupyterLab keeps a hash of its password, and has the token beside it.
    assert!(is_password(secret("jupyterlab", true)));
}

#[test]
fn a_page_with_a_token_knows_whether_its_port_is_private() {
    for flavor in Standard::flavors() {
        for private_page in [false, true] {
            let blueprint = Standard::blueprint(&BlueprintRequest {
                private_page,
                ..request(&flavor.name)
            });
            assert_eq!(
                has(&blueprint.unwrap(), "private_page"),
                private_page && flavor.web_auth == WebAuth::Token,
                "{}",
                flavor.name
            );
        }
    }
}

#[test]
fn a_gpu_selects_the_cuda_image() {
    for flavor in Standard::flavors() {
        let mut request = request(&flavor.name);
        request.n_gpus = 1;
        let images = Standard::blueprint(&request).unwrap().images;
        let has_cuda = |image: &wharf_guest::Image| image.reference.ends_with("-cuda:1");
        assert_eq!(images.iter().all(has_cuda), flavor.gpu_aware);
        assert_eq!(images.iter().any(has_cuda), flavor.gpu_aware);
    }
    assert_eq!(
        names(|f| f.gpu_aware),
        set(["datascience", "datasciencemarimo"])
    );
}

#[test]
fn only_root_can_read_secrets() {
    for flavor in Standard::flavors() {
        let mut request = request(&flavor.name);
        request.s3_prefill = flavor.s3_prefill;
        for file in Standard::blueprint(&request).unwrap().files {
            if !matches!(file.content, Content::Bytes(_)) {
                assert_eq!(
                    (file.mode, file.uid, file.gid),
                    (0o600, 0, 0),
                    "{}",
                    file.path
                );
            }
        }
    }
}

#[test]
fn only_web_flavors_get_the_clear_password() {
    for flavor in Standard::flavors() {
        let files = Standard::blueprint(&request(&flavor.name)).unwrap().files;
        let clear = files
            .iter()
            .any(|file| matches!(file.content, Content::Secret(Secret::Password)));
        assert_eq!(clear, flavor.web, "{}", flavor.name);
    }
}

#[test]
fn only_base_has_a_vm_image() {
    let mut vm = request("base");
    vm.resource_type = ResourceType::Vm;
    let blueprint = Standard::blueprint(&vm).unwrap();
    assert_eq!(blueprint.images[0].reference, "localhost/wharf/vm-base:1");
    let files: Vec<_> = blueprint.files.iter().map(|f| f.path.as_str()).collect();
    let expected = ["user", "password", "authorized_keys"];
    assert_eq!(
        files,
        expected.map(|name| format!("/var/lib/wharf/first-boot/{name}"))
    );
    let owned = |f: &wharf_guest::File| (f.mode, f.uid, f.gid) == (0o600, 1000, 1000);
    assert!(
        blueprint.files.iter().all(owned),
        "every file must belong to QEMU's user"
    );
    vm.flavor = "marimo".into();
    assert!(matches!(Standard::blueprint(&vm), Err(Error::Invalid(e)) if e.field == "flavor"));
}

#[test]
fn unsupported_features_are_refused() {
    let mut s3 = request("base");
    s3.s3_prefill = true;
    assert!(matches!(Standard::blueprint(&s3), Err(Error::Invalid(_))));
    assert!(matches!(
        Standard::blueprint(&request("nope")),
        Err(Error::NotFound)
    ));
}
