//! A range of ports, one bit each.

/// Which ports of a range are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortPool {
    from: u16,
    to: u16,
    taken: Vec<u64>,
    /// Where the next search begins, so that a freed port is not handed out again at once.
    next: u32,
}

impl PortPool {
    /// An empty pool; both ends included.
    pub fn new(from: u16, to: u16) -> Self {
        let length = usize::from(to.saturating_sub(from)) + 1;
        Self {
            from,
            to,
            taken: vec![0; length.div_ceil(64)],
            next: 0,
        }
    }

    fn length(&self) -> u32 {
        u32::from(self.to - self.from) + 1
    }

    fn is_taken(&self, offset: u32) -> bool {
        self.taken
            .get(offset as usize / 64)
            .is_none_or(|word| word & (1 << (offset % 64)) != 0)
    }

    /// A port that is free, if any is.
    pub fn free(&self) -> Option<u16> {
        let length = self.length();
        let mut offset = self.next % length;
        let mut left = length;
        while left > 0 {
            // Whole words at a time where all 64 are taken.
            if offset.is_multiple_of(64)
                && left >= 64
                && self.taken.get(offset as usize / 64) == Some(&u64::MAX)
            {
                offset += 64;
                left -= 64;
            } else {
                if !self.is_taken(offset) {
                    return u16::try_from(u32::from(self.from) + offset).ok();
                }
                offset += 1;
                left -= 1;
            }
            if offset >= length {
                offset = 0;
            }
        }
        None
    }

    /// Marks a port; ports outside the range (of an older configuration) are passed over.
    pub fn set(&mut self, port: u16, taken: bool) {
        if !(self.from..=self.to).contains(&port) {
            return;
        }
        let offset = u32::from(port - self.from);
        if let Some(word) = self.taken.get_mut(offset as usize / 64) {
            let bit = 1 << (offset % 64);
            if taken {
                *word |= bit;
                self.next = offset + 1;
            } else {
                *word &= !bit;
            }
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
}
