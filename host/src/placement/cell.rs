//! A tree of nodes of one kind that halves all three quantities at each level. Each cell knows the
//! most that any of its nodes has free, which bounds how good they can be.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// vCPUs, RAM and disk that are free.
pub(super) type Free = [u32; 3];

/// What lies in a cell: from, to (not included), of each quantity.
type Within = [Range<u32>; 3];

/// Quantities that differ, in one cell before it is divided.
const FEW: usize = 8;

/// Nodes whose free quantities are within certain ranges.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// The most of each quantity that any node here has.
    pub most: Free,
    /// The first node.
    pub first: usize,
    pub content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Few(BTreeMap<Free, BTreeSet<usize>>),
    Divided(Box<[Cell; 8]>),
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            most: [0; 3],
            first: usize::MAX,
            content: Content::Few(BTreeMap::new()),
        }
    }
}

fn whole(capacity: Free) -> Within {
    capacity.map(|total| 0..total.saturating_add(1))
}

/// Which of a cell's eight parts has a place for these quantities, and what lies in it.
fn part(free: Free, within: &Within) -> (usize, Within) {
    let mut number = 0;
    let mut part = within.clone();
    for (free, range) in free.iter().zip(&mut part) {
        let middle = range.start + (range.end - range.start) / 2;
        number <<= 1;
        if *free < middle {
            range.end = middle;
        } else {
            range.start = middle;
            number |= 1;
        }
    }
    (number, part)
}

impl Cell {
    /// Adds a node.
    pub fn insert(&mut self, number: usize, free: Free, capacity: Free) {
        self.insert_within(number, free, &whole(capacity));
    }

    /// Takes a node out again.
    pub fn remove(&mut self, number: usize, free: Free, capacity: Free) {
        self.remove_within(number, free, &whole(capacity));
    }

    fn insert_within(&mut self, number: usize, free: Free, within: &Within) {
        self.first = self.first.min(number);
        for (most, free) in self.most.iter_mut().zip(free) {
            *most = free.max(*most);
        }
        match &mut self.content {
            Content::Few(few) => {
                few.entry(free).or_default().insert(number);
                if few.len() > FEW {
                    self.divide(within);
                }
            }
            Content::Divided(cells) => {
                let (place, part) = part(free, within);
                if let Some(cell) = cells.get_mut(place) {
                    cell.insert_within(number, free, &part);
                }
            }
        }
    }

    /// Ends: quantities that differ are in different parts sooner or later.
    fn divide(&mut self, within: &Within) {
        let cells = Content::Divided(Box::default());
        let Content::Few(few) = std::mem::replace(&mut self.content, cells) else {
            return;
        };
        for (free, numbers) in few {
            for number in numbers {
                self.insert_within(number, free, within);
            }
        }
    }

    fn remove_within(&mut self, number: usize, free: Free, within: &Within) {
        match &mut self.content {
            Content::Few(few) => {
                if let Some(numbers) = few.get_mut(&free) {
                    numbers.remove(&number);
                    if numbers.is_empty() {
                        few.remove(&free);
                    }
                }
            }
            Content::Divided(cells) => {
                let (place, part) = part(free, within);
                if let Some(cell) = cells.get_mut(place) {
                    cell.remove_within(number, free, &part);
                }
            }
        }
        self.summarise();
    }

    /// What is known of the whole cell, from its content; an empty one is undivided again.
    fn summarise(&mut self) {
        let (mut most, mut first) = ([0; 3], usize::MAX);
        let mut see = |free: &Free, number: usize| {
            first = number.min(first);
            for (most, free) in most.iter_mut().zip(free) {
                *most = *free.max(most);
            }
        };
        match &self.content {
            Content::Few(few) => few
                .iter()
                .filter_map(|(free, numbers)| Some((free, numbers.first()?)))
                .for_each(|(free, number)| see(free, *number)),
            Content::Divided(cells) => cells.iter().for_each(|cell| see(&cell.most, cell.first)),
        }
        (self.most, self.first) = (most, first);
        if first == usize::MAX {
            *self = Self::default();
        }
    }
}
