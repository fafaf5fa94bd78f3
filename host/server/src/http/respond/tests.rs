//! Responses of errors.

use super::{HttpError, Response, error, http_error, reply};
use crate::api::{EndpointReply, Sight};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use wharf_domain::error::{Error, FieldErrors, Shortfall};
use wharf_domain::state::InstanceState;

async fn parts(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn every_error() {
    let shortfall = Shortfall::from(vec![("n_vcpus", 8, 2), ("n_gpus", 1, 0)]);
    let short = json!({ "detail": {
        "message": "Insufficient resources: not enough n_vcpus, n_gpus available.",
        "bottleneck": ["n_vcpus", "n_gpus"],
        "requested": { "n_vcpus": 8, "n_gpus": 1 },
        "nearest_available": { "n_vcpus": 2, "n_gpus": 0 },
    }});
    let state = Error::State {
        verb: "stop",
        state: InstanceState::Provisioning,
        needed: "running",
    };
    for (given, expected) in [
        (
            FieldErrors::one("name", "taken").into(),
            (400, json!({ "name": ["taken"] })),
        ),
        (
            Error::NotFound,
            (404, json!({ "detail": "Instance not found." })),
        ),
        (
            state,
            (
                400,
                json!({ "detail": "Cannot stop an instance that is provisioning; it must be running." }),
            ),
        ),
        (
            Error::NotApplicable("only so"),
            (400, json!({ "detail": "Only so." })),
        ),
        (Error::Insufficient(shortfall), (422, short)),
    ] {
        assert_eq!(parts(error(&given)).await, expected);
    }
    for (given, status) in [
        (Error::NodeUnreachable("SECRET".to_owned()), 502),
        (Error::NotStarted("SECRET".to_owned()), 502),
        (
            Error::caused("SECRET", std::io::Error::other("SECRET")),
            500,
        ),
        (Error::Overloaded, 503),
    ] {
        let (got, body) = parts(error(&given)).await;
        assert_eq!(got, status);
        assert!(!body.to_string().contains("SECRET"));
    }
}

#[tokio::test]
async fn headers_that_go_with_a_status() {
    let unauthorized = http_error(&HttpError::Unauthorized);
    assert_eq!(unauthorized.headers()["www-authenticate"], "Bearer");
    assert_eq!(http_error(&HttpError::Busy).headers()["retry-after"], "1");
    let moved = http_error(&HttpError::Slash("/api/instance/?a=b".to_owned()));
    assert_eq!(
        (moved.status().as_u16(), &moved.headers()["location"]),
        (308, &"/api/instance/?a=b".parse().unwrap())
    );
    let gone = reply(EndpointReply::Gone);
    assert!(gone.headers().get("content-type").is_none());
    assert_eq!(parts(gone).await.0, 204);
    assert_eq!(
        parts(reply(EndpointReply::Created(
            Bytes::from_static(b"{}"),
            Sight::Whole
        )))
        .await,
        (201, json!({}))
    );
}
