//! Values that wait some minutes in memory. Their number is bounded, and each has the network of its
//! client. A client with most of them makes room for others.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A bounded number of values, which expire after one lifetime.
#[derive(Debug)]
pub struct ExpiringMap<K, V> {
    entries: HashMap<K, Entry<V>>,
    most: usize,
    lifetime: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    network: Option<IpAddr>,
    ends: Instant,
}

impl<K: Clone + Eq + Hash, V> ExpiringMap<K, V> {
    /// Makes a map for at most this number of values.
    pub fn new(most: usize, lifetime: Duration) -> Self {
        Self {
            entries: HashMap::new(),
            most,
            lifetime,
        }
    }

    /// Keeps a value. If the map is full, the oldest value of the network with most of them makes room.
    pub fn put(&mut self, key: K, value: V, network: Option<IpAddr>, now: Instant) {
        if self.entries.len() >= self.most {
            self.entries.retain(|_, entry| now < entry.ends);
        }
        if self.entries.len() >= self.most
            && let Some(oldest) = self.oldest_of_fullest()
        {
            self.entries.remove(&oldest);
        }
        let ends = now + self.lifetime;
        let entry = Entry {
            value,
            network,
            ends,
        };
        self.entries.insert(key, entry);
    }

    fn oldest_of_fullest(&self) -> Option<K> {
        let mut counts: HashMap<_, usize> = HashMap::new();
        for entry in self.entries.values() {
            *counts.entry(entry.network).or_default() += 1;
        }
        let count = |entry: &Entry<V>| counts.get(&entry.network).copied().unwrap_or_default();
        let fullest = counts.values().max().copied()?;
        let mut oldest: Option<(&K, &Entry<V>)> = None;
        for (key, entry) in &self.entries {
            let is_older = oldest.is_none_or(|(_, oldest)| entry.ends < oldest.ends);
            if count(entry) == fullest && is_older {
                oldest = Some((key, entry));
            }
        }
        oldest.map(|(key, _)| key.clone())
    }

    /// Returns a value that has not expired.
    pub fn get_mut(&mut self, key: &K, now: Instant) -> Option<&mut V> {
        let entry = self.entries.get_mut(key).filter(|entry| now < entry.ends);
        entry.map(|entry| &mut entry.value)
    }

    /// Takes a value that has not expired.
    pub fn take(&mut self, key: &K, now: Instant) -> Option<V> {
        let entry = self.entries.remove(key).filter(|entry| now < entry.ends);
        entry.map(|entry| entry.value)
    }

    /// The values that have not expired.
    pub fn iter_mut(&mut self, now: Instant) -> impl Iterator<Item = (&K, &mut V)> {
        let entries = self.entries.iter_mut();
        let valid = entries.filter(move |(_, entry)| now < entry.ends);
        valid.map(|(key, entry)| (key, &mut entry.value))
    }
}

#[cfg(test)]
mod tests {
    use super::ExpiringMap;
    use std::net::IpAddr;
    use std::time::{Duration, Instant};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_oldest_of_the_fullest_network_makes_room() {
        let network = |n: u8| Some(IpAddr::from([192, 0, 2, n]));
        let start = Instant::now();
        let mut entries = ExpiringMap::new(4, 60 * SECOND);
        entries.put("victim", (), network(1), start);
        for (n, key) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
            let now = start + SECOND * u32::try_from(n).unwrap();
            entries.put(key, (), network(2), now);
        }
        let now = start + 10 * SECOND;
        let mut left: Vec<_> = entries.iter_mut(now).map(|(key, ())| *key).collect();
        left.sort_unstable();
        assert_eq!(left, ["d", "e", "f", "victim"]);
        assert!(entries.get_mut(&"victim", start + 60 * SECOND).is_none());
        // Expired values make room first.
        entries.put("late", (), network(3), start + 60 * SECOND);
        assert!(entries.take(&"d", now).is_some() && entries.take(&"d", now).is_none());
    }
}
