//! Credentials of the operator's for a registry, and a flavor provider that names images there.

use crate::engine::RecordingEngine;
use crate::fixtures::Plugins;
use crate::uuid;
use wharf_tests::{Ports, Server, small, until, write_private};

const PASSWORD: &str = "a-password-of-the-tests";
/// The account, as dockerd and Podman decode it.
const ACCOUNT: &str = "eyJ1c2VybmFtZSI6IndoYXJmIiwicGFzc3dvcmQiOiJhLXBhc3N3b3JkLW9mLXRoZS10ZXN0cyIsInNlcnZlcmFk\
                       ZHJlc3MiOiJyZWdpc3RyeS5leGFtcGxlIn0=";

#[test]
fn only_images_of_the_program_and_of_the_operator_are_pulled_with_credentials() {
    let plugins = Plugins::driver();
    plugins.add_flavors();
    let engine = RecordingEngine::refusing();
    let password = plugins.path().join("password");
    write_private(&password, PASSWORD.as_bytes()).unwrap();
    let settings = format!(
        "plugins_dir = {:?}\n{}\
         [[registry]]\nhost = \"registry.example\"\nuser = \"wharf\"\npassword_file = {password:?}\n\
         [[flavor]]\nname = \"tools\"\nimage = \"registry.example/team/tools:1\"\nssh = true\n\
         [[flavor]]\nname = \"elsewhere\"\nimage = \"registry.example.evil/team/tools:1\"\nssh = true\n\
         [[node]]\nname = \"n1\"\ndriver = \"hostile\"\nendpoint = \"unix://{}\"\n\
         capacity = {{ n_vcpus = 8, mem_gib = 8, disk_size_gib = 100 }}\n\
         settings = {{ mode = \"asks\", image_prefix = \"registry.example/w/\", asks = {{ ensure = [\
         {{ how = \"show\", name = \"pull-image\", arguments = [] }}, \
         {{ how = \"job\", name = \"pull-image\", arguments = [] }}] }} }}\n",
        plugins.path(),
        Ports::take().settings(),
        engine.socket().display(),
    );
    let server = Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    for (flavor, image, has_account) in [
        ("tools", "registry.example%2Fteam%2Ftools%3A1", true),
        ("base", "registry.example%2Fw%2Fbase%3A1", true),
        (
            "elsewhere",
            "registry.example.evil%2Fteam%2Ftools%3A1",
            false,
        ),
        ("private", "registry.example%2Fsecret%3A1", false),
        ("harmless", "registry.example%2Fw%2Fbase%3A1", false),
    ] {
        let before = engine.asked().len();
        let mut body = small("container");
        body["flavor"] = flavor.into();
        let created = api.create(&body).unwrap().expect(201).unwrap();
        let asked = until(&format!("the pull of {flavor}"), || {
            let asked = engine.asked();
            let mut new = asked.into_iter().skip(before);
            Ok(new.find(|asked| asked.line.starts_with("POST /images/create")))
        })
        .unwrap();
        let line = format!("POST /images/create?fromImage={image} HTTP/1.1");
        assert_eq!(asked.line, line, "{flavor}");
        // The engine of the tests records small letters.
        let account = format!("x-registry-auth: {ACCOUNT}").to_lowercase();
        assert_eq!(asked.headers.contains(&account), has_account, "{flavor}");
        let any = asked
            .headers
            .iter()
            .any(|header| header.contains("registry-"));
        assert_eq!(any, has_account, "{flavor}");
        api.wait_for(uuid(&created), "running").unwrap();
        api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    }
    let wrote = server.data_and_log().unwrap();
    let log = server.log();
    for secret in [PASSWORD, ACCOUNT] {
        assert!(
            !wrote
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        );
        assert!(!log.contains(secret));
    }
    server.finish().unwrap();
}
