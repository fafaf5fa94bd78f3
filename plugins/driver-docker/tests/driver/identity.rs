//! The mark of the engine's store.

use crate::fake::Fake;
use crate::fake::given::{INSTALLATION, node};
use driver_docker::context::Context;
use driver_docker::identity::{identify, mark};
use serde_json::Value;

#[test]
fn a_store_is_marked_once() {
    let (fake, node) = (Fake::new(), node("{}"));
    let ctx = Context::new(&node, &fake).unwrap();
    assert_eq!(identify(&ctx).unwrap(), None);
    mark(&ctx, "first").unwrap();
    assert_eq!(identify(&ctx).unwrap().as_deref(), Some("first"));
    mark(&ctx, "second").unwrap();
    assert_eq!(identify(&ctx).unwrap().as_deref(), Some("first"));
}

#[test]
fn a_volume_of_another_program_is_no_mark() {
    let (fake, node) = (Fake::new(), node("{}"));
    let name = format!("wharf-{INSTALLATION}");
    fake.world.borrow_mut().volumes.insert(name, Value::Null);
    let ctx = Context::new(&node, &fake).unwrap();
    assert_eq!(identify(&ctx).unwrap(), None);
}
