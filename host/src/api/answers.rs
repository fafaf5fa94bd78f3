//! Rendered answers, kept for as long as reading again would give the same: bounded, and never older
//! than what is durable.

use crate::app::{App, Topic, Version};
use crate::domain::error::Error;
use crate::domain::ids::UserId;
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// What an entry costs beside its body, roughly.
const ENTRY_BYTES: u64 = 160;
/// What most answers weigh; sizes the cache's own tables.
const USUAL_BYTES: u64 = 1024;

/// The answers, by what they are about.
pub(super) struct Answers(Cache<Topic, Answer, Weight>);

#[derive(Clone)]
struct Answer {
    /// Whose question it answers.
    user: UserId,
    version: Version,
    body: Bytes,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Topic, Answer> for Weight {
    fn weight(&self, _: &Topic, answer: &Answer) -> u64 {
        ENTRY_BYTES + u64::try_from(answer.body.len()).unwrap_or(u64::MAX / 2)
    }
}

impl Answers {
    /// Keeps at most so many bytes.
    pub fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / USUAL_BYTES).unwrap_or(usize::MAX);
        Self(Cache::with_weighter(items, bytes, Weight))
    }

    /// The answer about a topic to this user, from memory if nothing of the topic has changed since.
    pub fn answer(
        &self,
        app: &App,
        user: UserId,
        topic: Topic,
        read: impl FnOnce() -> Result<Bytes, Error>,
    ) -> Result<Bytes, Error> {
        let version = app.version(&topic);
        if let Some(known) = self.0.get(&topic)
            && Some(known.version) == version
            && known.user == user
        {
            return Ok(known.body);
        }
        let body = read()?;
        // Only what was read while nothing changed is known to be of that version.
        if let Some(version) = version
            && app.version(&topic) == Some(version)
        {
            let answer = Answer {
                user,
                version,
                body: body.clone(),
            };
            self.0.insert(topic, answer);
        }
        Ok(body)
    }
}
