//! Two engines in this process, and the content that goes from one to the other.

use super::Offers;
use crate::{
    EngineAccess, EngineError, EngineNode, EngineRequest, EngineResponse, InProcessEngine,
};
use crate::{JobState, Outgoing, Transport};
use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wharf_domain::ids::NodeId;
use wharf_domain::secret::InstanceSecrets;
use wharf_requests::{RequestFile, SampleCall};

const ONE: &str = "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const OTHER: &str = "1b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";

/// An engine with content, or one that gets it.
#[derive(Debug, Clone, Default)]
struct Engine(Arc<Mutex<Option<Bytes>>>);

impl InProcessEngine for Engine {
    fn send<'a>(
        &'a self,
        outgoing: &'a Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<EngineResponse, EngineError>> + Send + 'a>> {
        let body = match (&outgoing.method, outgoing.path.as_str()) {
            (&Method::PUT, _) => {
                *self.0.lock() = outgoing.body.as_ref().map(|(_, body)| body.clone());
                Bytes::new()
            }
            (_, "/changes") => "[]".into(),
            _ => self.0.lock().clone().unwrap_or_default(),
        };
        let answer = EngineResponse {
            status: 200,
            headers: Vec::new(),
            body,
        };
        Box::pin(async { Ok(answer) })
    }
}

fn access(kind: &str, offers: &Arc<Offers>, engine: &Engine, call: &str, of: &str) -> EngineAccess {
    let file = format!(
        "kind = \"{kind}\"\nabout = \"x\"\nin-process = true\n\
         [transfer.offer]\nabout = \"x\"\nread = \"/content\"\nchanges = \"/changes\"\ncalls = \"change\"\n\
         [transfer.fetch]\nabout = \"x\"\nwrite = \"/content\"\ncalls = \"create\"\n"
    );
    let file = RequestFile::parse(&file).unwrap();
    let transport = Transport::in_process(engine.clone());
    let offers = Arc::clone(offers);
    let node = EngineNode::open(
        NodeId(kind.into()),
        transport,
        &file,
        &Value::Null,
        offers,
        Arc::default(),
    );
    let call = json!({ "call": call, "instance": of }).to_string();
    EngineAccess::new(
        Arc::new(node.unwrap()),
        SampleCall::parse(&call).unwrap().scope,
        InstanceSecrets::default(),
        Instant::now() + Duration::from_secs(60),
    )
}

fn begin(access: &mut EngineAccess, transfer: &str) -> Result<(), EngineError> {
    access.begin_transfer(&EngineRequest {
        name: transfer.to_owned(),
        arguments: Vec::new(),
        timeout: None,
    })
}

#[tokio::test]
async fn an_offer_is_for_its_instance_and_kind_of_engine_only() {
    let offers = Arc::default();
    let (from, to) = (Engine::default(), Engine::default());
    *from.0.lock() = Some("content".into());
    let mut source = access("a", &offers, &from, "change", ONE);
    let mut target = access("a", &offers, &to, "create", ONE);
    let unreachable = |begun| matches!(begun, Err(EngineError::Unreachable(_)));
    assert!(unreachable(begin(&mut target, "fetch")));
    begin(&mut source, "offer").unwrap();
    assert!(source.transfer_state().unwrap().is_none());
    let mut stranger = access("a", &offers, &to, "create", OTHER);
    assert!(unreachable(begin(&mut stranger, "fetch")));
    begin(&mut target, "fetch").unwrap();
    let answer = loop {
        tokio::task::yield_now().await;
        match target.transfer_state().unwrap() {
            Some(JobState::Running(_)) => {}
            Some(JobState::Done(answer)) => break answer,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(answer.status, 200);
    assert_eq!(to.0.lock().as_deref(), Some(&b"content"[..]));
    // An offer is taken once.
    assert!(unreachable(begin(&mut target, "fetch")));
    begin(&mut source, "offer").unwrap();
    let mut unlike = access("b", &offers, &to, "create", ONE);
    let refused = begin(&mut unlike, "fetch").unwrap_err();
    assert_eq!(
        refused,
        EngineError::Refused("the content is of an engine of kind \"a\"".into())
    );
}
