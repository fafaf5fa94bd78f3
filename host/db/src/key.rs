//! Keys as bytes. Rows sort as these bytes do, so numbers are big-endian.

use std::fmt::Debug;
use uuid::Uuid;
use wharf_domain::ids::{BackupId, BucketId, InstanceId, SnapshotId, UserId, VolumeId};
use wharf_domain::webhook::WebhookId;

/// A part of a key. No encoding is a prefix of another one of its type.
pub trait KeyPart: Clone + Debug + Send + Sized + 'static {
    /// Appends the encoding.
    fn write(&self, out: &mut Vec<u8>);
    /// Takes a part off the front; none if the bytes are not its encoding.
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

/// The key of a row: both parts, or the one that is not empty.
pub trait TableKey<F, R> {
    /// Returns both parts.
    fn parts(self) -> (F, R);
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (part, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*part)
}

impl KeyPart for () {
    fn write(&self, _: &mut Vec<u8>) {}
    fn read(_: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

/// Parts as arrays of bytes.
macro_rules! fixed {
    ($($part:ty: $write:expr, $read:expr;)*) => {$(
        impl KeyPart for $part {
            fn write(&self, out: &mut Vec<u8>) {
                let write: fn(&Self) -> _ = $write;
                out.extend(write(self));
            }
            fn read(bytes: &mut &[u8]) -> Option<Self> {
                take(bytes).map($read)
            }
        }
    )*};
}

fixed! {
    u32: |n| n.to_be_bytes(), Self::from_be_bytes;
    u64: |n| n.to_be_bytes(), Self::from_be_bytes;
    UserId: |user| user.0.to_be_bytes(), |bytes| Self(u64::from_be_bytes(bytes));
    InstanceId: |id| *id.0.as_bytes(), |bytes| Self(Uuid::from_bytes(bytes));
    VolumeId: |id| *id.0.as_bytes(), |bytes| Self(Uuid::from_bytes(bytes));
    SnapshotId: |id| *id.0.as_bytes(), |bytes| Self(Uuid::from_bytes(bytes));
    BucketId: |id| *id.0.as_bytes(), |bytes| Self(Uuid::from_bytes(bytes));
    BackupId: |id| *id.0.as_bytes(), |bytes| Self(Uuid::from_bytes(bytes));
    WebhookId: |id| *id.0.as_bytes(), |bytes| Self(Uuid::from_bytes(bytes));
}

impl<const N: usize> KeyPart for [u8; N] {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes)
    }
}

impl<A: KeyPart, B: KeyPart> KeyPart for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::read(bytes)?, B::read(bytes)?))
    }
}

/// Text has its length first, so it sorts by length.
impl KeyPart for String {
    fn write(&self, out: &mut Vec<u8>) {
        u32::try_from(self.len()).unwrap_or(u32::MAX).write(out);
        out.extend(self.as_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let length = usize::try_from(u32::read(bytes)?).ok()?;
        let (text, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Self::from_utf8(text.to_vec()).ok()
    }
}

impl<F, R> TableKey<F, R> for (F, R) {
    fn parts(self) -> Self {
        self
    }
}

impl<R> TableKey<String, R> for (&str, R) {
    fn parts(self) -> (String, R) {
        (self.0.to_owned(), self.1)
    }
}

impl TableKey<String, ()> for &str {
    fn parts(self) -> (String, ()) {
        (self.to_owned(), ())
    }
}

impl TableKey<(), ()> for () {
    fn parts(self) -> ((), ()) {
        ((), ())
    }
}

impl<const N: usize> TableKey<(), Self> for [u8; N] {
    fn parts(self) -> ((), Self) {
        ((), self)
    }
}

/// Parts that are whole keys, as the first part or as the rest.
macro_rules! whole {
    ($($part:ty),*) => {$(
        impl TableKey<Self, ()> for $part {
            fn parts(self) -> (Self, ()) {
                (self, ())
            }
        }
        impl TableKey<(), Self> for $part {
            fn parts(self) -> ((), Self) {
                ((), self)
            }
        }
    )*};
}

whole!(u64, String, UserId, InstanceId, VolumeId, SnapshotId);
