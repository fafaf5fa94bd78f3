//! The findings of the review in the files that ship.

use wharf_requests::RequestFile;

#[test]
fn shipped_files_have_few_findings() {
    let plugins = wharf_testkit::workspace::root().join("plugins");
    for (path, wanted) in [
        ("driver-docker/requests.toml", 0),
        // The disks of the pool, and the devices of the instance and of its snapshot.
        ("driver-incus/requests.toml", 3),
        ("driver-simulated/requests.toml", 0),
        ("example-driver-python/driver-cells.requests.toml", 0),
    ] {
        let text = std::fs::read_to_string(plugins.join(path)).unwrap();
        let findings = RequestFile::parse(&text).unwrap().lint();
        assert_eq!(findings.len(), wanted, "{path}: {findings:?}");
    }
}
