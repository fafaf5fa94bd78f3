//! Section 4.10: stats.

use crate::{start, uuid};
use wharf_tests::small;

#[test]
fn a_running_container_has_stats() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    let path = format!("/api/instance/{}/stats/", uuid(&created));
    api.wait_for(uuid(&created), "running").unwrap();
    for _ in 0..3 {
        let stats = api.get(&path).unwrap().expect(200).unwrap();
        let keys: Vec<_> = stats
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys,
            [
                "cpu_percent",
                "disk_total_gib",
                "disk_used_gib",
                "mem_total_gib",
                "mem_used_gib"
            ]
        );
        assert!(stats["cpu_percent"].as_f64().unwrap() >= 0.0);
        assert_eq!(stats["mem_total_gib"], 1.0);
        assert_eq!(stats["disk_total_gib"].as_f64(), Some(10.0));
    }
    api.act(uuid(&created), "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let answer = api.get(&path).unwrap();
    assert_eq!(answer.status, 400);
    assert!(
        answer.body["detail"].as_str().unwrap().contains("exited"),
        "{answer:?}"
    );
    server.finish().unwrap();
}

#[test]
fn vms_have_no_stats() {
    let (server, api) = start();
    let vm = api.create(&small("vm")).unwrap().expect(201).unwrap();
    api.wait_for(uuid(&vm), "running").unwrap();
    let answer = api
        .get(&format!("/api/instance/{}/stats/", uuid(&vm)))
        .unwrap();
    assert_eq!(answer.status, 400, "{answer:?}");
    server.finish().unwrap();
}
