//! A pool of ports.

use super::bits::Bits;
use std::collections::BTreeSet;

/// The taken ports of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortPool {
    from: u16,
    to: u16,
    taken: Bits,
    /// Offsets of the ports that something outside Wharf holds.
    out: BTreeSet<u32>,
    /// Start of the next search, so that a freed port is not reused at once.
    next: u32,
}

impl PortPool {
    /// Creates a pool of the ports from `from` to `to`, both included, with no port taken.
    pub fn new(from: u16, to: u16) -> Self {
        Self {
            from,
            to,
            taken: Bits::default(),
            out: BTreeSet::new(),
            next: 0,
        }
    }

    /// Returns the number of ports, taken ones included.
    pub fn length(&self) -> u32 {
        u32::from(self.to.saturating_sub(self.from)) + 1
    }

    /// Returns a free port.
    pub fn free(&self) -> Option<u16> {
        let length = self.length();
        let free = |from, to| self.taken.free_of(from, to, &self.out);
        let offset = free(self.next, length).or_else(|| free(0, self.next.min(length)))?;
        u16::try_from(u32::from(self.from) + offset).ok()
    }

    /// Keeps a port out, or offers it again.
    pub fn keep_out(&mut self, port: u16, out: bool) {
        let Some(offset) = port.checked_sub(self.from).map(u32::from) else {
            return;
        };
        if out {
            self.out.insert(offset)
        } else {
            self.out.remove(&offset)
        };
    }

    /// Returns whether a port is kept out.
    pub fn is_out(&self, port: u16) -> bool {
        let offset = port.checked_sub(self.from).map(u32::from);
        offset.is_some_and(|offset| self.out.contains(&offset))
    }

    /// Marks a port as taken or free. Ports outside the range, left from an earlier configuration, are
    /// ignored.
    pub fn set(&mut self, port: u16, taken: bool) {
        if !(self.from..=self.to).contains(&port) {
            return;
        }
        let offset = u32::from(port - self.from);
        self.taken.set(offset, taken);
        if taken {
            self.next = offset + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PortPool;

    #[test]
    fn hands_out_each_port_once_and_again_when_freed() {
        let mut pool = PortPool::new(2000, 2199);
        let mut seen = std::collections::BTreeSet::new();
        while let Some(port) = pool.free() {
            assert!(seen.insert(port));
            pool.set(port, true);
        }
        assert_eq!(seen.len(), 200);
        pool.set(2077, false);
        assert_eq!(pool.free(), Some(2077));
    }

    #[test]
    fn a_freed_port_rests_until_all_others_had_their_turn() {
        let mut pool = PortPool::new(65_530, 65_535);
        for port in 65_530..=65_533 {
            pool.set(port, true);
        }
        pool.set(65_530, false);
        assert_eq!(pool.free(), Some(65_534));
        pool.set(65_534, true);
        pool.set(65_535, true);
        assert_eq!(pool.free(), Some(65_530));
    }
}
