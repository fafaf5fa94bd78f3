//! Keys as bytes. Rows sort as these bytes do, so numbers are big-endian.

use uuid::Uuid;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::webhook::WebhookId;

/// A part of a key. No encoding is a prefix of another one of the same type.
pub trait Part {
    /// The type that is read back.
    type Owned;
    /// Appends the encoding.
    fn write(&self, out: &mut Vec<u8>);
    /// Takes a part off the front; none if the bytes are not its encoding.
    fn read(bytes: &mut &[u8]) -> Option<Self::Owned>;
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (part, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*part)
}

impl Part for () {
    type Owned = ();
    fn write(&self, _: &mut Vec<u8>) {}
    fn read(_: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

impl Part for u32 {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_be_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(Self::from_be_bytes)
    }
}

impl Part for u64 {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_be_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(Self::from_be_bytes)
    }
}

impl<const N: usize> Part for [u8; N] {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes)
    }
}

impl<A: Part<Owned = A>, B: Part<Owned = B>> Part for (A, B) {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::read(bytes)?, B::read(bytes)?))
    }
}

impl Part for InstanceId {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(|id| Self(Uuid::from_bytes(id)))
    }
}

impl Part for WebhookId {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes).map(|id| Self(Uuid::from_bytes(id)))
    }
}

impl Part for UserId {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        u64::read(bytes).map(Self)
    }
}

impl Part for String {
    type Owned = Self;
    fn write(&self, out: &mut Vec<u8>) {
        self.as_str().write(out);
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        str::read(bytes)
    }
}

/// Text has its length first, so it sorts by length.
impl Part for str {
    type Owned = String;
    fn write(&self, out: &mut Vec<u8>) {
        u32::try_from(self.len()).unwrap_or(u32::MAX).write(out);
        out.extend(self.as_bytes());
    }
    fn read(bytes: &mut &[u8]) -> Option<String> {
        let length = usize::try_from(u32::read(bytes)?).ok()?;
        let (text, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
