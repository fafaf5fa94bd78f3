//! Hostile flavor providers: only requests for their flavors fail.

use crate::fixtures::Plugins;
use crate::{logged, server, uuid};
use wharf_tests::small;

#[test]
fn an_impossible_blueprint_fails_its_own_request_only() {
    let plugins = Plugins::flavors();
    let (server, api) = server(&plugins, &[]);
    let body = |flavor: &str| {
        let mut body = small("container");
        body["flavor"] = flavor.into();
        body
    };
    for (flavor, says) in [
        ("loops", "more than 300 ms of CPU time"),
        ("traps", "on purpose"),
        ("eats", "more than 32 MiB of memory"),
        ("dots", "/etc/../../root/x"),
        ("relative", "root/x"),
        ("secret", "which was not given"),
        ("many-files", "flavor provider"),
        ("large-file", "files of"),
        ("image", "image"),
        ("variable", "environment variable"),
        ("health", "health check"),
    ] {
        let answer = api.create(&body(flavor)).unwrap();
        assert_eq!(answer.status, 500, "{flavor}: {answer:?}");
        let text = answer.body.to_string();
        assert!(
            !text.contains(says) && !text.contains("fault"),
            "{flavor}: {text}"
        );
        assert!(
            logged(&server, &["flavor provider", says]),
            "{flavor}: {}",
            server.log()
        );
        let well = api.small_container().unwrap();
        api.wait_for(uuid(&well), "running").unwrap();
        api.delete(uuid(&well)).unwrap().expect(204).unwrap();
    }
    let harmless = api.create(&body("harmless")).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&harmless), "running").unwrap();
    assert_eq!(api.list().unwrap().len(), 1);
    server.finish().unwrap();
}
