//! Sections 4.1 and 4.2: list and get.

use crate::{start, uuid};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wharf_tests::small;

#[test]
fn uuid_in_any_case_and_name_are_interchangeable() {
    let (server, api) = start();
    let created = api.small_container().unwrap();
    api.wait_for(uuid(&created), "running").unwrap();
    let by_id = api.instance(uuid(&created)).unwrap().expect(200).unwrap();
    let upper = uuid(&created).to_uppercase();
    for selector in [created["name"].as_str().unwrap(), &upper] {
        assert_eq!(api.instance(selector).unwrap().expect(200).unwrap(), by_id);
    }
    // Other spellings of a UUID count as names, and no instance has such a name.
    let simple = uuid(&created).replace('-', "");
    assert_eq!(api.instance(&simple).unwrap().status, 404);
    server.finish().unwrap();
}

#[test]
fn the_list_is_in_order_of_creation_and_leaves_owner_email_out() {
    let (server, api) = start();
    assert!(api.list().unwrap().is_empty());
    let names = ["zeta-1", "alpha-2", "mid-3"];
    for name in names {
        let mut body = small("container");
        body["name"] = json!(name);
        api.create(&body).unwrap().expect(201).unwrap();
        api.wait_for(name, "running").unwrap();
    }
    let list = api.list().unwrap();
    let listed: Vec<_> = list.iter().map(|i| i["name"].as_str().unwrap()).collect();
    assert_eq!(listed, names);
    for (listed, name) in list.iter().zip(names) {
        let mut got = api.instance(name).unwrap().expect(200).unwrap();
        assert_eq!(got["owner_email"], "ann@example.com");
        got.as_object_mut().unwrap().remove("owner_email");
        assert_eq!(listed, &got);
    }
    server.finish().unwrap();
}

#[test]
fn pages_follow_each_other_to_the_end_of_the_list() {
    let (server, api) = start();
    for _ in 0..5 {
        api.small_container().unwrap();
    }
    let (mut path, mut paged, mut sizes) = ("/api/instance/?limit=2".to_owned(), vec![], vec![]);
    loop {
        let answer = api.get(&path).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.body.as_array().unwrap();
        sizes.push(page.len());
        paged.extend(page.iter().map(|i| i["uuid"].clone()));
        let Some(link) = answer.header("link") else {
            break;
        };
        let (url, rest) = link.strip_prefix('<').unwrap().split_once('>').unwrap();
        assert_eq!(rest, "; rel=\"next\"");
        path = url.to_owned();
    }
    assert_eq!(sizes, [2, 2, 1]);
    let whole = api.get("/api/instance/").unwrap();
    assert!(whole.header("link").is_none());
    let whole = whole.body.as_array().unwrap().iter();
    assert_eq!(paged, whole.map(|i| i["uuid"].clone()).collect::<Vec<_>>());
    // The last page is full: no empty one follows it.
    let last = api.get("/api/instance/?limit=5").unwrap();
    assert!(last.header("link").is_none() && last.body.as_array().unwrap().len() == 5);
    // A page begins where the one before ended, whatever was deleted meanwhile.
    let first = api.get("/api/instance/?limit=2").unwrap();
    let second = paged[1].as_str().unwrap();
    api.delete(second).unwrap().expect(204).unwrap();
    let link = first.header("link").unwrap();
    let url = &link[1..link.find('>').unwrap()];
    assert_eq!(api.get(url).unwrap().body[0]["uuid"], paged[2]);
    server.finish().unwrap();
}

#[test]
fn wrong_page_parameters_are_400_on_each() {
    let (server, api) = start();
    for (query, fields) in [
        ("limit=0", &["limit"][..]),
        ("limit=1001", &["limit"]),
        ("limit=x&after=y", &["after", "limit"]),
        ("limit=1&limit=2", &["limit"]),
        ("after=x", &["after"]),
    ] {
        let answer = api.get(&format!("/api/instance/?{query}")).unwrap();
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        let wrong: Vec<_> = answer.body.as_object().unwrap().keys().collect();
        assert_eq!(wrong, fields, "{query}");
    }
    let page = api.get("/api/instance/?after=0").unwrap();
    assert_eq!(page.expect(200).unwrap(), serde_json::json!([]));
    assert!(api.list().unwrap().is_empty());
    server.finish().unwrap();
}

#[test]
fn rates_are_exact_decimals_frozen_at_creation() {
    let settings = "[rates.general-purpose]\nvcpu = 0.1\nram = \"0.000000001\"\nstorage = 0.3\n";
    let node = wharf_tests::simulated_node("one", "");
    let ports = wharf_tests::Ports::take().settings();
    let server = wharf_tests::Server::start(&format!("{ports}{settings}{node}")).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    assert_eq!(created["vcpu_cost_hourly_usd"].to_string(), "0.1");
    assert_eq!(created["ram_cost_hourly_usd"].to_string(), "1e-9");
    assert_eq!(created["storage_cost_hourly_usd"].to_string(), "0.3");
    assert_eq!(created["gpu_cost_hourly_usd"], 0.0);
    server.finish().unwrap();
}

#[test]
fn a_read_is_never_older_than_earlier_answers() {
    const RENAMES: u64 = 200;
    // The readers have their own end, in case the writer fails before it can stop them.
    let end = Instant::now() + Duration::from_secs(120);
    let (server, api) = start();
    let created = api.small_container().unwrap();
    let id = uuid(&created);
    api.wait_for(id, "running").unwrap();
    let rename = |n: u64| {
        let path = format!("/api/instance/{id}/");
        let body = json!({ "name": format!("n-{n}") });
        api.send("PATCH", &path, &body)
            .unwrap()
            .expect(200)
            .unwrap();
    };
    let number = |instance: &serde_json::Value| -> u64 {
        let name = instance["name"].as_str().unwrap();
        name.strip_prefix("n-").unwrap().parse().unwrap()
    };
    rename(0);
    let answered = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (api, answered, done) = (api.clone(), &answered, &done);
            scope.spawn(move || {
                let mut seen = 0;
                let mut reads = 0;
                while reads < 10 || (!done.load(Ordering::SeqCst) && Instant::now() < end) {
                    let least = answered.load(Ordering::SeqCst).max(seen);
                    seen = match (reads + reader) % 2 {
                        0 => number(&api.instance(id).unwrap().expect(200).unwrap()),
                        _ => number(&api.list().unwrap()[0]),
                    };
                    assert!(seen >= least, "{seen} was read after {least}");
                    reads += 1;
                }
            });
        }
        for n in 1..=RENAMES {
            rename(n);
            answered.store(n, Ordering::SeqCst);
        }
        done.store(true, Ordering::SeqCst);
    });
    server.finish().unwrap();
}
