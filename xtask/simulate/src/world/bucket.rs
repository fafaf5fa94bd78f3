//! The object store: the buckets of users with their backups, and its faults.

use super::{CrashAt, Disk, Fault, State, Truth, World};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::sleep;
use wharf_backups::{FoundBucket, NewBucket, Objects, Reach};
use wharf_buckets::{
    BackupKey, BucketError, BucketKeys, ContentReader, ContentReceiver, Manifest, SentContent,
};
use wharf_domain::backup::BucketAddress;
use wharf_domain::error::{Error, FieldErrors};
use wharf_engine::Piece;

/// The objects of a backup: the name of its bucket, and its id.
type Place = (String, String);

/// The object store.
#[derive(Debug, Default)]
pub struct ObjectStore {
    contents: BTreeMap<Place, Bytes>,
    manifests: BTreeMap<Place, Manifest>,
    uploads: BTreeSet<Place>,
    /// The backups that the store altered, lost, or kept after their deletion.
    spoiled: BTreeSet<Place>,
}

/// What the store does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    AsAsked,
    /// It claims a success.
    Lied,
    /// It alters the object.
    Altered,
}

/// The time for which the client waits for a store that hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Pieces between a bucket and its reader.
const PIECES: usize = 2;

/// The way to the object store.
pub struct SimReach(pub World);

#[async_trait]
impl Reach for SimReach {
    async fn find(&self, new: &NewBucket, _: BucketKeys) -> Result<FoundBucket, Error> {
        let bucket = SimBucket::of(&self.0, &new.address);
        let found = bucket.ask("list-manifests", "", false, |store, (name, _), _| {
            let own = store.manifests.iter().filter(|((of, _), _)| *of == name);
            Ok(own.map(|(_, manifest)| manifest.clone()).collect())
        });
        let found = found.await;
        Ok(FoundBucket {
            key: BackupKey::generate(),
            wrapped_key: "a key".to_owned(),
            manifests: found.map_err(|error| FieldErrors::one("endpoint", error.to_string()))?,
        })
    }

    fn bucket(
        &self,
        address: &BucketAddress,
        _: BucketKeys,
    ) -> Result<Arc<dyn Objects>, BucketError> {
        Ok(Arc::new(SimBucket::of(&self.0, address)))
    }
}

/// A bucket.
#[derive(Clone)]
struct SimBucket {
    world: World,
    name: String,
}

impl SimBucket {
    fn of(world: &World, address: &BucketAddress) -> Self {
        Self {
            world: world.clone(),
            name: address.bucket.clone(),
        }
    }

    /// Sends a request, which meets the faults of the seed.
    async fn ask<T: Send>(
        &self,
        what: &str,
        id: &str,
        changes: bool,
        carry_out: impl FnOnce(&mut ObjectStore, Place, Done) -> Result<T, BucketError> + Send,
    ) -> Result<T, BucketError> {
        let (fault, crash, latency) = self.begin(what, id, changes);
        if crash == Some(CrashAt::Before) {
            return self.world.end_of_process().await;
        }
        sleep(latency).await;
        let place = (self.name.clone(), id.to_owned());
        let done = |done| carry_out(&mut self.world.state.lock().store, place, done);
        let broke = || BucketError::Unreachable("the connection broke".to_owned());
        let answer = match fault {
            Some(Fault::Refused) => Err(BucketError::Denied("a policy".to_owned())),
            Some(Fault::Reboot) => Err(BucketError::Full("a quota".to_owned())),
            Some(Fault::PortTaken) => Err(BucketError::Keys),
            Some(Fault::AddressTaken) => Err(BucketError::NoBucket),
            Some(Fault::RetryLater | Fault::HalfAway) => Err(BucketError::Throttled),
            Some(Fault::AnswerLost | Fault::ErrorAfter) => done(Done::AsAsked).and(Err(broke())),
            Some(Fault::Late | Fault::VeryLate) if changes => done(Done::Lied),
            Some(Fault::Stale | Fault::Duplicate) if changes => done(Done::Altered),
            Some(Fault::HungBefore) => {
                sleep(HANGS).await;
                Err(broke())
            }
            Some(Fault::HungAfter) => {
                let _ = done(Done::AsAsked);
                sleep(HANGS).await;
                Err(broke())
            }
            None | Some(Fault::Death) => done(Done::AsAsked),
            Some(_) => Err(broke()),
        };
        if crash.is_some() {
            return self.world.end_of_process().await;
        }
        let words = answer
            .as_ref()
            .map_or_else(ToString::to_string, |_| "ok".to_owned());
        let line = format!("{what} {id}: {words}");
        self.world.state.lock().trace.line(STORE, &line);
        answer
    }

    fn begin(
        &self,
        what: &str,
        id: &str,
        changes: bool,
    ) -> (Option<Fault>, Option<CrashAt>, Duration) {
        let mut state = self.world.state.lock();
        state.calls += 1;
        let number = state.calls;
        let (fault, crash) = state.plan.at(number, changes);
        let latency = Duration::from_millis(state.dice.between(1, 30));
        let mut line = format!("call {number}: {what} {id}");
        if let Some(fault) = fault {
            line += &format!(", {fault:?}");
        }
        if let Some(crash) = crash {
            line += &format!(", the process ends {crash:?}");
        }
        state.trace.line(STORE, &line);
        if fault == Some(Fault::Death) {
            state.lose_a_backup();
        }
        (fault, crash, latency)
    }
}

/// The name of the store in traces.
const STORE: &str = "s3";

impl State {
    /// The store loses the content of a backup.
    fn lose_a_backup(&mut self) {
        let places: Vec<_> = self.store.contents.keys().cloned().collect();
        if let Some(place) = self.dice.pick(&places) {
            self.store.contents.remove(place);
            self.store.spoiled.insert(place.clone());
        }
    }
}

#[async_trait]
impl Objects for SimBucket {
    async fn upload(
        &self,
        id: &str,
        _: &BackupKey,
        mut pieces: ContentReceiver,
    ) -> Result<SentContent, BucketError> {
        self.ask("begin-upload", id, true, |store, place, _| {
            store.uploads.insert(place);
            Ok(())
        })
        .await?;
        let (mut content, mut is_whole) = (Vec::new(), false);
        let parts = async {
            while let Some(piece) = pieces.recv().await {
                match piece {
                    Piece::Gone(_) => {}
                    Piece::Data(data) => {
                        content.extend_from_slice(&data);
                        self.ask("put-part", id, true, |_, _, _| Ok(())).await?;
                    }
                    Piece::Whole => {
                        is_whole = true;
                        break;
                    }
                }
            }
            Ok(())
        };
        let mut sent: Result<(), BucketError> = parts.await;
        let content = Bytes::from(content);
        let bytes = content.len() as u64;
        if sent.is_ok() && is_whole {
            let completed = self.ask("complete-upload", id, true, |store, place, done| {
                store.uploads.remove(&place);
                store.spoiled.remove(&place);
                store.put(&place, done)?;
                store.contents.insert(place, content);
                Ok(())
            });
            sent = completed.await;
        } else if sent.is_ok() {
            sent = Err(BucketError::BrokenOff);
        }
        if let Err(error) = sent {
            let _ = self.abort(|place| place.1 == id).await;
            return Err(error);
        }
        Ok(SentContent {
            tar_bytes: bytes,
            stored_bytes: bytes,
            sha256: String::new(),
            gone: Vec::new(),
        })
    }

    async fn put_manifest(
        &self,
        id: &str,
        manifest: &Manifest,
        _: &BackupKey,
    ) -> Result<(), BucketError> {
        self.ask("put-manifest", id, true, |store, place, done| {
            store.put(&place, done)?;
            store.manifests.insert(place, manifest.clone());
            Ok(())
        })
        .await
    }

    async fn manifest(&self, id: &str, _: &BackupKey) -> Result<Manifest, BucketError> {
        self.ask("get-manifest", id, false, |store, place, _| {
            let manifest = store.manifests.get(&place).cloned();
            manifest.ok_or(BucketError::Missing("manifest of this backup"))
        })
        .await
    }

    async fn open(&self, manifest: &Manifest, _: &BackupKey) -> Result<ContentReader, BucketError> {
        let content = self.ask("get-content", &manifest.id, false, |store, place, _| {
            let content = store.contents.get(&place).cloned();
            let content = content.ok_or(BucketError::Missing("content of this backup"))?;
            Ok((content, store.spoiled.contains(&place)))
        });
        let (content, is_altered) = content.await?;
        let (sender, reader) = mpsc::channel(PIECES);
        let (bucket, id) = (self.clone(), manifest.id.clone());
        tokio::spawn(async move { bucket.read(&id, content, is_altered, sender).await });
        Ok(reader)
    }

    async fn verify(&self, manifest: &Manifest, key: &BackupKey) -> Result<(), BucketError> {
        let mut content = self.open(manifest, key).await?;
        while let Some(piece) = content.recv().await {
            piece?;
        }
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), BucketError> {
        self.ask("delete-manifest", id, true, |store, place, done| {
            store.delete(&place, done, |store, place| {
                drop(store.manifests.remove(place))
            })
        })
        .await?;
        self.abort(|place| place.1 == id).await?;
        self.ask("delete-content", id, true, |store, place, done| {
            store.delete(&place, done, |store, place| {
                drop(store.contents.remove(place))
            })
        })
        .await
    }

    async fn abort_uploads(&self, keep: &[String]) -> Result<(), BucketError> {
        self.abort(|place| !keep.contains(&place.1)).await
    }
}

impl SimBucket {
    /// Ends uploads of this bucket.
    async fn abort(&self, ends: impl Fn(&Place) -> bool + Send) -> Result<(), BucketError> {
        self.ask("abort-uploads", "", true, move |store, (name, _), _| {
            store
                .uploads
                .retain(|place| place.0 != name || !ends(place));
            Ok(())
        })
        .await
    }

    /// Hands a content over in two pieces, of which the last one comes once everything was right.
    async fn read(
        &self,
        id: &str,
        content: Bytes,
        is_altered: bool,
        to: Sender<Result<Bytes, BucketError>>,
    ) {
        let (first, last) = content.split_at(content.len() / 2);
        if to.send(Ok(Bytes::copy_from_slice(first))).await.is_err() {
            return;
        }
        let rest = self.ask("get-rest", id, false, |_, _, _| Ok(())).await;
        let rest = rest.and_then(|()| {
            let altered = || BucketError::Altered("its content".to_owned());
            (!is_altered)
                .then(|| Bytes::copy_from_slice(last))
                .ok_or_else(altered)
        });
        let _ = to.send(rest).await;
    }
}

impl ObjectStore {
    /// Notes a request to keep an object. The client reads back whether it is there.
    fn put(&mut self, place: &Place, done: Done) -> Result<(), BucketError> {
        if done == Done::Lied {
            return Err(BucketError::Altered(
                "the server did not keep it".to_owned(),
            ));
        }
        if done == Done::Altered {
            self.spoiled.insert(place.clone());
        }
        Ok(())
    }

    /// Deletes an object, or claims it.
    fn delete(
        &mut self,
        place: &Place,
        done: Done,
        remove: impl FnOnce(&mut Self, &Place),
    ) -> Result<(), BucketError> {
        if done == Done::AsAsked {
            remove(self, place);
        } else {
            self.spoiled.insert(place.clone());
        }
        Ok(())
    }
}

impl Truth<'_> {
    /// The content of a complete backup in a bucket.
    pub fn backup(&self, bucket: &str, id: &str) -> Option<Disk> {
        let (store, place) = (&self.0.store, (bucket.to_owned(), id.to_owned()));
        store.manifests.get(&place)?;
        serde_json::from_slice(store.contents.get(&place)?).ok()
    }

    /// Whether the store altered or lost a backup, or kept it after its deletion.
    pub fn is_spoiled(&self, bucket: &str, id: &str) -> bool {
        let place = (bucket.to_owned(), id.to_owned());
        self.0.store.spoiled.contains(&place)
    }

    /// The uploads that are not complete: their buckets, and the ids of their backups.
    pub fn uploads(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.store.uploads.iter()
    }
}
