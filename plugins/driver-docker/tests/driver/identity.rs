//! The mark of the engine's store.

use crate::calls::Calls;
use crate::fake::Fake;
use crate::fake::given::{INSTALLATION, node};
use serde_json::Value;

#[test]
fn a_store_is_marked_once() {
    let (fake, node) = (Fake::new(), node("{}"));
    let calls = Calls::new(&node, &fake);
    assert_eq!(calls.identify().unwrap(), None);
    calls.mark("first").unwrap();
    assert_eq!(calls.identify().unwrap().as_deref(), Some("first"));
    calls.mark("second").unwrap();
    assert_eq!(calls.identify().unwrap().as_deref(), Some("first"));
}

#[test]
fn a_volume_of_another_program_is_no_mark() {
    let (fake, node) = (Fake::new(), node("{}"));
    let name = format!("wharf-{INSTALLATION}");
    fake.world.borrow_mut().volumes.insert(name, Value::Null);
    let calls = Calls::new(&node, &fake);
    assert_eq!(calls.identify().unwrap(), None);
}
