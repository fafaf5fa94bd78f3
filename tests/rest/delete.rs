//! Section 4.7: delete.

use crate::{start, start_with, uuid};
use wharf_tests::{small, until};

#[test]
fn delete_is_204_without_body_and_then_404_from_every_state() {
    let (server, api) = start_with("ready_after_ms = 300");
    for state in ["provisioning", "running", "exited"] {
        let created = api.small_container().unwrap();
        if state != "provisioning" {
            api.wait_for(uuid(&created), "running").unwrap();
        }
        if state == "exited" {
            api.act(uuid(&created), "stop")
                .unwrap()
                .expect(200)
                .unwrap();
        }
        let answer = api.delete(uuid(&created)).unwrap();
        assert_eq!(answer.status, 204, "{state}: {answer:?}");
        assert!(answer.body.is_null());
        assert_eq!(api.instance(uuid(&created)).unwrap().status, 404);
        assert_eq!(api.delete(uuid(&created)).unwrap().status, 404);
        assert!(api.list().unwrap().is_empty());
    }
    server.finish().unwrap();
}

#[test]
fn a_deletion_frees_the_resources() {
    let (server, api) = start();
    let mut body = small("container");
    body["n_vcpus"] = serde_json::json!(16);
    for _ in 0..3 {
        let created = until("the resources are free", || {
            let answer = api.create(&body)?;
            Ok((answer.status == 201).then_some(answer.body))
        });
        let created = created.unwrap();
        assert_eq!(api.create(&body).unwrap().status, 422);
        api.wait_for(uuid(&created), "running").unwrap();
        api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    }
    server.finish().unwrap();
}
