//! `GET /api/event/`: the events of the caller's instances, as pages and as messages of a stream.

use super::{Api, render};
use bytes::Bytes;
use std::borrow::Cow;
use wharf_accounts::access::InvalidCredential;
use wharf_db::TopicCounts;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::InstanceId;
use wharf_ground::caller::Caller;
use wharf_instances::{OwnerEvents, Selector};

/// The default and the largest `limit`.
const LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// Approximate bytes of one event.
const EVENT_BYTES: usize = 384;

/// Rule for the number of an event.
pub const NUMBER: &str = "must be the `id` of an event, an integer from 0";

/// The query of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub limit: usize,
    /// The number of the event after which the page or the stream begins.
    pub after: Option<u64>,
    /// The one instance whose events are wanted.
    pub instance: Option<Selector>,
    /// Whether a stream has messages about other lists, and about its end.
    pub changes: bool,
}

impl Query {
    /// Reads the query parameters. Unknown ones are ignored.
    pub fn parse<'a>(
        query: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let (mut limit, mut after, mut instance, mut changes) = (None, None, None, None);
        for (name, value) in query {
            let place = match &*name {
                "limit" => &mut limit,
                "after" => &mut after,
                "instance" => &mut instance,
                "changes" => &mut changes,
                _ => continue,
            };
            if place.replace(value).is_some() {
                errors.add(&name, "must be given once");
            }
        }
        let limit = limit.map(|limit| limit.parse().ok());
        let limit = limit.unwrap_or(Some(LIMIT));
        let limit = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit));
        if limit.is_none() {
            errors.add("limit", "must be an integer from 1 to 1000");
        }
        let after = after.map(|after| after.parse().ok());
        if after == Some(None) {
            errors.add("after", NUMBER);
        }
        let changes = changes.map(|changes| changes.parse().ok());
        if changes == Some(None) {
            errors.add("changes", "must be true or false");
        }
        errors.into_result()?;
        Ok(Self {
            limit: limit.unwrap_or(LIMIT),
            after: after.flatten(),
            instance: instance.map(|instance| Selector::parse(&instance)),
            changes: changes.flatten().unwrap_or_default(),
        })
    }
}

/// The instance that a query names.
pub fn instance(api: &Api, caller: &Caller, query: &Query) -> Result<Option<InstanceId>, Error> {
    let named = query.instance.as_ref();
    let found = named.map(|selector| api.app.instance_of_events(caller, selector));
    found.transpose()
}

/// A page of events, and the number after which the next page begins, if there is one.
pub fn page(
    api: &Api,
    caller: &Caller,
    instance: Option<InstanceId>,
    query: &Query,
) -> Result<(Bytes, Option<u64>), Error> {
    // An extra row shows whether a page follows.
    let mut found = api
        .app
        .events(caller, instance, query.after, query.limit + 1)?;
    let more = found.events.len() > query.limit;
    found.events.truncate(query.limit);
    let next = found.events.last().filter(|_| more).map(|event| event.id);
    let events = found.with_reset();
    Ok((render(&events, EVENT_BYTES * events.len() + 2)?, next))
}

/// The first message of a stream that begins after a number. A client that loses the connection
/// comes back after two seconds.
pub fn ready(after: u64) -> Bytes {
    format!("retry: 2000\nevent: ready\nid: {after}\ndata: {{\"after\":{after}}}\n\n").into()
}

/// The messages of a stream; empty without events.
pub fn messages(found: &OwnerEvents) -> Result<Bytes, Error> {
    use std::fmt::Write;
    let mut text = String::with_capacity(EVENT_BYTES * found.events.len());
    if let Some(before) = found.reset {
        let oldest = before.saturating_add(1);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "event: reset\nid: {before}\ndata: {{\"oldest\":{oldest}}}\n\n"
        );
    }
    for event in &found.events {
        let data = serde_json::to_string(event)
            .map_err(|error| Error::caused("cannot render an event", error))?;
        let _ = write!(text, "event: event\nid: {}\ndata: {data}\n\n", event.id);
    }
    Ok(text.into())
}

/// The message about the topics whose counts differ.
pub fn changed(before: &TopicCounts, now: &TopicCounts) -> Bytes {
    let differ = now
        .iter()
        .filter(|(topic, count)| before.get(*topic) != Some(count));
    let lists: Vec<_> = differ.map(|(topic, _)| format!("{topic:?}")).collect();
    let lists = lists.join(",");
    format!("event: changed\ndata: {{\"lists\":[{lists}]}}\n\n").into()
}

/// The last message of a stream whose key or session is not valid any more.
pub fn ended(why: InvalidCredential) -> Bytes {
    let reason = match why {
        InvalidCredential::Disabled => "disabled",
        InvalidCredential::Expired => "expired",
        InvalidCredential::Ended => "ended",
    };
    format!("event: end\ndata: {{\"reason\":\"{reason}\"}}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::{Query, changed};
    use wharf_instances::Selector;

    fn parse(query: &str) -> Result<Query, Vec<String>> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let parsed = Query::parse(pairs.map(|(name, value)| (name.into(), value.into())));
        parsed.map_err(|errors| errors.0.keys().map(ToString::to_string).collect())
    }

    #[test]
    fn queries() {
        let query = |limit, after, instance: Option<&str>| {
            Ok(Query {
                limit,
                after,
                instance: instance.map(Selector::parse),
                changes: false,
            })
        };
        assert_eq!(parse(""), query(100, None, None));
        assert_eq!(parse("x=1&after=0"), query(100, Some(0), None));
        let all = parse("limit=1000&after=7&instance=box");
        assert_eq!(all, query(1000, Some(7), Some("box")));
        for (wrong, fields) in [
            ("limit=0", &["limit"][..]),
            ("limit=1001&after=-1", &["after", "limit"]),
            ("after=x", &["after"]),
            ("changes=1", &["changes"]),
            ("instance=a&instance=b", &["instance"]),
        ] {
            let fields = fields.iter().map(ToString::to_string).collect();
            assert_eq!(parse(wrong), Err(fields), "{wrong}");
        }
        assert!(parse("changes=true").unwrap().changes);
        assert!(!parse("changes=false").unwrap().changes);
    }

    #[test]
    fn the_message_about_lists_names_those_that_changed() {
        assert_eq!(
            changed(
                &[("audit", 3), ("keys", 2)].into(),
                &[("audit", 4), ("keys", 2), ("webhooks", 1)].into()
            ),
            "event: changed\ndata: {\"lists\":[\"audit\",\"webhooks\"]}\n\n"
        );
    }
}
