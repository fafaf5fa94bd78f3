//! Labels: the names in the addresses of pages.

use super::{label, page, start};
use crate::fsck::{bytes, edit};
use crate::{Expected, has, kept, kill, uuid, with};
use redb::ReadableTable as _;
use serde_json::json;
use wharf_tests::Api;

fn rename(api: &Api, instance: &serde_json::Value, name: &str) -> serde_json::Value {
    api.patch(uuid(instance), &json!({ "name": name })).is(200)
}

#[test]
fn a_page_has_its_name_as_its_address_unless_that_would_mislead() {
    let (_server, ann, _) = start();
    assert_eq!(label(&page(&ann, "marimo", "demo")), "demo");
    assert_eq!(label(&page(&ann, "marimo", "demo-8000")), "demo-8000");
    for (name, stem) in [
        ("www", "www-"),
        ("wpad", "wpad-"),
        ("xn--80ak6aa92e", "80ak6aa92e-"),
    ] {
        let made = page(&ann, "marimo", name);
        let (label, id) = (label(&made), uuid(&made));
        assert_eq!(label, format!("{stem}{}", &id[id.len() - 6..]));
    }
    let machine = ann.small_container().unwrap();
    assert!(machine["webapp_url"].is_null());
}

/// Browsers keep programs and data of a page for its host name.
#[test]
fn a_label_stays_with_its_owner_when_its_instance_is_gone() {
    let (mut server, ann, _) = start();
    let bob = server.user("bob@example.com").unwrap();
    let first = page(&ann, "marimo", "demo");
    ann.delete(uuid(&first)).is(204);
    let theirs = page(&bob, "marimo", "demo");
    let id = uuid(&theirs);
    assert_eq!(label(&theirs), format!("demo-{}", &id[id.len() - 6..]));
    let (ann, bob) = (kill(&mut server, &ann), server.again(&bob));
    assert_eq!(label(&bob.instance(id).is(200)), label(&theirs));
    rename(&bob, &theirs, "other");
    // The name is free again, and the label still is the first owner's.
    assert_eq!(label(&page(&ann, "marimo", "demo")), "demo");
}

#[test]
fn a_rename_gives_the_page_another_label_and_the_way_back() {
    let (_server, ann, _) = start();
    let made = page(&ann, "marimo", "demo");
    let renamed = rename(&ann, &made, "other");
    assert_eq!(label(&renamed), "other");
    let listed = &ann.list().unwrap()[0];
    assert_eq!(listed["webapp_url"], renamed["webapp_url"]);
    assert_eq!(label(&rename(&ann, &made, "demo")), "demo");
    // The label of a living instance is not for the next one, but an earlier one of it is.
    assert_eq!(label(&page(&ann, "marimo", "other")), "other");
    let resized = json!({ "n_vcpus": 2, "name": "third" });
    assert_eq!(label(&ann.patch(uuid(&made), &resized).is(200)), "third");
}

/// A loop of renames must not take all names.
#[test]
fn a_user_has_a_thousand_labels_and_then_the_ids_of_instances() {
    const MOST: usize = 1000;
    let ports = wharf_tests::Ports::take().settings();
    let settings = format!(
        "{}{}{ports}{}",
        super::PAGES,
        wharf_tests::WITHOUT_RATES,
        wharf_tests::simulated_node("one", "")
    );
    let server = crate::serve(&settings);
    let [ann, bob] = ["ann@example.com", "bob@example.com"].map(|user| server.user(user).unwrap());
    let made = page(&ann, "marimo", "name-1");
    for number in 2..=MOST {
        let name = format!("name-{number}");
        assert_eq!(label(&rename(&ann, &made, &name)), name);
    }
    let id = uuid(&made).replace('-', "");
    assert_eq!(label(&rename(&ann, &made, "one-more")), id);
    let shared = format!("/api/instance/{}/share/", uuid(&made));
    let shared = ann.send("POST", &shared, &json!({ "port": 8000, "access": "owner" }));
    let port = json!({ "webapp_url": shared.is(201)["url"] });
    assert_eq!(label(&port), format!("{id}-8000"));
    assert_eq!(label(&page(&bob, "marimo", "two-more")), "two-more");
    // Earlier labels of her own stay hers.
    assert_eq!(label(&rename(&ann, &made, "name-7")), "name-7");
}

#[test]
fn a_lost_entry_of_a_label_is_repaired() {
    let (mut server, api, _ports) = start();
    let made = page(&api, "marimo", "demo");
    server.terminate().unwrap();
    edit(&server, |rows| {
        let prefix = [b"i", &bytes(uuid(&made))[..], &[6]].concat();
        let found = rows.range::<&[u8]>(&*prefix..).unwrap();
        let keys = found.map(|row| row.unwrap().0.value().to_vec());
        let keys: Vec<Vec<u8>> = keys.take_while(|key| key.starts_with(&prefix)).collect();
        assert_eq!(keys.len(), 1);
        rows.remove(&*keys[0]).unwrap();
    });
    let done = server.cli(&["fsck", "--repair", "--yes"]).unwrap();
    assert!(done.contains("repaired 1"), "{done}");
    server.run().unwrap();
}

#[test]
fn without_pages_an_address_has_the_port_as_before() {
    let (_server, ann) = crate::start();
    let body = with("container", json!({ "flavor": "marimo", "name": "demo" }));
    let made = ann.create(&body).is(201);
    let url = made["webapp_url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
}

/// The database had no labels then. The page has no token that the gateway could add.
#[test]
fn an_instance_of_an_earlier_version_has_its_page_by_name() {
    let mut server = kept::stopped_server();
    let settings = std::fs::read_to_string(server.config_path()).unwrap();
    std::fs::write(server.config_path(), format!("{settings}{}", super::PAGES)).unwrap();
    server.run().unwrap();
    let mut pages = Vec::new();
    for user in ["ann", "bob"] {
        let api = kept::api(&server, user);
        for instance in api.list().unwrap() {
            if instance["webapp_url"].is_string() {
                assert_eq!(label(&instance), instance["name"].as_str().unwrap());
                // Its image had no SSH server beside the page.
                let path = format!("/api/instance/{}/tunnel/", uuid(&instance));
                let refused = api.get(&path).is(400);
                has(&refused["detail"], "no SSH server");
                pages.push(instance);
            }
        }
    }
    assert!(!pages.is_empty());
}
