//! Places for work that waits some minutes in memory. They are bounded, and each has the network of its
//! client. A client that takes them all makes room for others.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A bounded number of places, each for the same time.
#[derive(Debug)]
pub struct Places<K, V> {
    places: HashMap<K, Place<V>>,
    most: usize,
    lifetime: Duration,
}

#[derive(Debug)]
struct Place<V> {
    value: V,
    network: Option<IpAddr>,
    ends: Instant,
}

impl<K: Clone + Eq + Hash, V> Places<K, V> {
    /// Makes at most this number of places.
    pub fn new(most: usize, lifetime: Duration) -> Self {
        Self {
            places: HashMap::new(),
            most,
            lifetime,
        }
    }

    /// Keeps a value. If there is no place, the oldest value of the network with most of them makes room.
    pub fn put(&mut self, key: K, value: V, network: Option<IpAddr>, now: Instant) {
        if self.places.len() >= self.most {
            self.places.retain(|_, place| now < place.ends);
        }
        if self.places.len() >= self.most
            && let Some(oldest) = self.oldest_of_fullest()
        {
            self.places.remove(&oldest);
        }
        let ends = now + self.lifetime;
        let place = Place {
            value,
            network,
            ends,
        };
        self.places.insert(key, place);
    }

    fn oldest_of_fullest(&self) -> Option<K> {
        let mut counts: HashMap<_, usize> = HashMap::new();
        for place in self.places.values() {
            *counts.entry(place.network).or_default() += 1;
        }
        let count = |place: &Place<V>| counts.get(&place.network).copied().unwrap_or_default();
        let fullest = counts.values().max().copied()?;
        let mut oldest: Option<(&K, &Place<V>)> = None;
        for (key, place) in &self.places {
            let is_older = oldest.is_none_or(|(_, oldest)| place.ends < oldest.ends);
            if count(place) == fullest && is_older {
                oldest = Some((key, place));
            }
        }
        oldest.map(|(key, _)| key.clone())
    }

    /// Returns a value that has not expired.
    pub fn get_mut(&mut self, key: &K, now: Instant) -> Option<&mut V> {
        let place = self.places.get_mut(key).filter(|place| now < place.ends);
        place.map(|place| &mut place.value)
    }

    /// Takes a value that has not expired.
    pub fn take(&mut self, key: &K, now: Instant) -> Option<V> {
        let place = self.places.remove(key).filter(|place| now < place.ends);
        place.map(|place| place.value)
    }

    /// The values that have not expired.
    pub fn iter_mut(&mut self, now: Instant) -> impl Iterator<Item = (&K, &mut V)> {
        let places = self.places.iter_mut();
        let valid = places.filter(move |(_, place)| now < place.ends);
        valid.map(|(key, place)| (key, &mut place.value))
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use std::net::IpAddr;
    use std::time::{Duration, Instant};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_oldest_of_the_fullest_network_makes_room() {
        let network = |n: u8| Some(IpAddr::from([192, 0, 2, n]));
        let start = Instant::now();
        let mut places = Places::new(4, 60 * SECOND);
        places.put("victim", (), network(1), start);
        for (n, key) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
            let now = start + SECOND * u32::try_from(n).unwrap();
            places.put(key, (), network(2), now);
        }
        let now = start + 10 * SECOND;
        let mut left: Vec<_> = places.iter_mut(now).map(|(key, ())| *key).collect();
        left.sort_unstable();
        assert_eq!(left, ["d", "e", "f", "victim"]);
        assert!(places.get_mut(&"victim", start + 60 * SECOND).is_none());
        // Expired values make room first.
        places.put("late", (), network(3), start + 60 * SECOND);
        assert!(places.take(&"d", now).is_some() && places.take(&"d", now).is_none());
    }
}
