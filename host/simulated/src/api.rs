//! The REST interface of the simulated engine, with one path for each driver function.

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;
use wharf_engine::Outgoing;

/// A driver function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `GET /info`
    Probe,
    /// `PUT /instances/ID`
    Ensure,
    /// `POST /instances/ID/start`
    Start,
    /// `POST /instances/ID/grow`
    Grow,
    /// `POST /instances/ID/stop`
    Stop,
    /// `PATCH /instances/ID`
    Resize,
    /// `DELETE /instances/ID`
    Delete,
    /// `GET /instances/ID`
    Inspect,
    /// `GET /instances`
    List,
    /// `GET /instances/ID/usage`
    Stats,
    /// `PUT /instances/ID/ports`
    Ports,
    /// `GET /marks/INSTALLATION`
    Identify,
    /// `PUT /marks/INSTALLATION`
    Mark,
    /// `POST /instances/ID/move-here`
    MoveHere,
    /// `GET /instances/ID/content`
    Content,
    /// `GET /instances/ID/changes`
    Changes,
    /// `POST /instances/ID/fetch`
    Fetch,
    /// `PUT /instances/ID/content`
    Receive,
    /// `PUT /volumes/ID`
    Make,
    /// `GET /volumes/ID`
    ReadVolume,
    /// `GET /volumes/ID/content`
    VolumeContent,
    /// `POST /volumes/ID/fetch`
    FetchVolume,
    /// `PUT /volumes/ID/content`
    ReceiveVolume,
    /// `DELETE /volumes/ID`
    Unmake,
    /// `GET /volumes`
    ListVolumes,
    /// `PUT /instances/ID/volumes`
    SetVolumes,
    /// `POST /limits/ID`
    ProveLimits,
    /// `PUT /instances/ID/snapshots/SNAPSHOT`
    Take,
    /// `GET /instances/ID/snapshots/SNAPSHOT`
    ReadSnapshot,
    /// `DELETE /instances/ID/snapshots/SNAPSHOT`
    Drop,
    /// `POST /instances/ID/restore/SNAPSHOT`
    Restore,
    /// `GET /snapshots`
    ListSnapshots,
}

impl Call {
    /// The number of driver functions.
    pub const COUNT: usize = Self::ListSnapshots as usize + 1;
}

/// A parsed request.
#[derive(Debug)]
pub struct Route<'a> {
    /// Driver function that the request calls.
    pub call: Call,
    /// Id of the machine, or of the volume.
    pub id: Option<Uuid>,
    /// Id of the snapshot of the machine.
    pub snapshot: Option<Uuid>,
    /// Installation in the path of a mark.
    pub installation: Option<&'a str>,
    /// JSON body, or null.
    pub body: Value,
    query: &'a str,
}

impl Route<'_> {
    /// Whether the request is about volumes or snapshots, and not about a machine.
    pub fn is_of_kept(&self) -> bool {
        self.is_of_volumes()
            || matches!(
                self.call,
                Call::Take | Call::ReadSnapshot | Call::Drop | Call::ListSnapshots
            )
    }

    /// Whether the request is about volumes.
    pub fn is_of_volumes(&self) -> bool {
        matches!(
            self.call,
            Call::Make
                | Call::ReadVolume
                | Call::VolumeContent
                | Call::FetchVolume
                | Call::ReceiveVolume
                | Call::Unmake
                | Call::ListVolumes
        )
    }
}

impl<'a> Route<'a> {
    /// Parses a request. Returns `None` for an unknown path or an invalid body.
    pub fn of(outgoing: &'a Outgoing) -> Option<Self> {
        let (path, query) = outgoing
            .path
            .split_once('?')
            .unwrap_or((&outgoing.path, ""));
        let mut parts = path.split('/').skip(1);
        let (first, id, verb) = (parts.next()?, parts.next(), parts.next());
        let call = match (&outgoing.method, first, id, verb) {
            (&Method::GET, "info", None, None) => Call::Probe,
            (&Method::GET, "instances", None, None) => Call::List,
            (&Method::GET, "volumes", None, None) => Call::ListVolumes,
            (&Method::POST, "limits", Some(_), None) => Call::ProveLimits,
            (&Method::PUT, "volumes", Some(_), None) => Call::Make,
            (&Method::GET, "volumes", Some(_), None) => Call::ReadVolume,
            (&Method::GET, "volumes", Some(_), Some("content")) => Call::VolumeContent,
            (&Method::POST, "volumes", Some(_), Some("fetch")) => Call::FetchVolume,
            (&Method::PUT, "volumes", Some(_), Some("content")) => Call::ReceiveVolume,
            (&Method::DELETE, "volumes", Some(_), None) => Call::Unmake,
            (&Method::PUT, "instances", Some(_), Some("volumes")) => Call::SetVolumes,
            (&Method::GET, "snapshots", None, None) => Call::ListSnapshots,
            (&Method::PUT, "instances", Some(_), Some("snapshots")) => Call::Take,
            (&Method::GET, "instances", Some(_), Some("snapshots")) => Call::ReadSnapshot,
            (&Method::DELETE, "instances", Some(_), Some("snapshots")) => Call::Drop,
            (&Method::POST, "instances", Some(_), Some("restore")) => Call::Restore,
            (&Method::GET, "marks", Some(_), None) => Call::Identify,
            (&Method::PUT, "marks", Some(_), None) => Call::Mark,
            (&Method::PUT, "instances", Some(_), None) => Call::Ensure,
            (&Method::PATCH, "instances", Some(_), None) => Call::Resize,
            (&Method::DELETE, "instances", Some(_), None) => Call::Delete,
            (&Method::GET, "instances", Some(_), None) => Call::Inspect,
            (&Method::GET, "instances", Some(_), Some("usage")) => Call::Stats,
            (&Method::PUT, "instances", Some(_), Some("ports")) => Call::Ports,
            (&Method::POST, "instances", Some(_), Some("start")) => Call::Start,
            (&Method::POST, "instances", Some(_), Some("grow")) => Call::Grow,
            (&Method::POST, "instances", Some(_), Some("move-here")) => Call::MoveHere,
            (&Method::POST, "instances", Some(_), Some("stop")) => Call::Stop,
            (&Method::GET, "instances", Some(_), Some("content")) => Call::Content,
            (&Method::GET, "instances", Some(_), Some("changes")) => Call::Changes,
            (&Method::POST, "instances", Some(_), Some("fetch")) => Call::Fetch,
            (&Method::PUT, "instances", Some(_), Some("content")) => Call::Receive,
            _ => return None,
        };
        let (id, installation) = match (call, id) {
            (Call::Identify | Call::Mark, installation) => (None, installation),
            (_, Some(text)) => (Some(Uuid::try_parse(text).ok()?), None),
            (_, None) => (None, None),
        };
        let snapshot = match call {
            Call::Take | Call::ReadSnapshot | Call::Drop | Call::Restore => {
                Some(Uuid::try_parse(parts.next()?).ok()?)
            }
            _ => None,
        };
        let body = match &outgoing.body {
            Some((_, bytes)) => serde_json::from_slice(bytes).ok()?,
            None => Value::Null,
        };
        Some(Self {
            call,
            id,
            snapshot,
            installation,
            body,
            query,
        })
    }

    /// Returns a query parameter without decoding it, since no value of this interface is encoded.
    pub fn parameter(&self, key: &str) -> Option<&'a str> {
        self.query.split('&').find_map(|pair| {
            pair.split_once('=')
                .filter(|(name, _)| *name == key)
                .map(|(_, v)| v)
        })
    }
}
