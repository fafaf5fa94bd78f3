//! The best node, without looking at all of them: best first, by what a cell of the index promises,
//! until nothing that is left can be better than what was found.

use super::cell::{Cell, Content, Free};
use super::index::{FreeIndex, Kind};
use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

/// Something that may hold the best node.
struct Promise<'a> {
    /// No node in it is better.
    score: f64,
    /// No node in it comes earlier.
    first: usize,
    kind: &'a Kind,
    of: Of<'a>,
}

enum Of<'a> {
    Cell(&'a Cell),
    /// Nodes with the same quantities.
    Equals(&'a BTreeSet<usize>),
}

impl Promise<'_> {
    /// By score; among equals the one with the earlier node is greater.
    fn key(&self) -> (f64, std::cmp::Reverse<usize>) {
        (self.score, std::cmp::Reverse(self.first))
    }
}

impl Ord for Promise<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((score, first), (other_score, other_first)) = (self.key(), other.key());
        score.total_cmp(&other_score).then(first.cmp(&other_first))
    }
}

impl PartialOrd for Promise<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Promise<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Promise<'_> {}

impl FreeIndex {
    /// What `take` makes of the node with the highest score; of equals, of the first.
    ///
    /// `bound` is the best score that a node of a kind with at most so much free can have, if it can
    /// have any, and must not fall where more is free. `take` gives a node's own score, if it has
    /// one.
    pub fn best<T>(
        &self,
        bound: impl Fn(&Kind, Free) -> Option<f64>,
        mut take: impl FnMut(usize) -> Option<(f64, T)>,
    ) -> Option<T> {
        let mut promises = BinaryHeap::new();
        let promise = |promises: &mut BinaryHeap<_>, kind, free, first, of| {
            if let Some(score) = bound(kind, free) {
                promises.push(Promise {
                    score,
                    first,
                    kind,
                    of,
                });
            }
        };
        for (kind, cell) in self.kinds() {
            if cell.first != usize::MAX {
                promise(&mut promises, kind, cell.most, cell.first, Of::Cell(cell));
            }
        }
        let mut best: Option<(f64, usize, T)> = None;
        let better = |best: &Option<(f64, usize, T)>, score: f64, number: usize| {
            best.as_ref().is_none_or(|(b, n, _)| {
                score > *b || (score.total_cmp(b) == Ordering::Equal && number < *n)
            })
        };
        while let Some(Promise {
            score,
            first,
            kind,
            of,
        }) = promises.pop()
        {
            if !better(&best, score, first) {
                break;
            }
            match of {
                Of::Cell(cell) => match &cell.content {
                    Content::Divided(cells) => {
                        for cell in cells.iter().filter(|cell| cell.first != usize::MAX) {
                            promise(&mut promises, kind, cell.most, cell.first, Of::Cell(cell));
                        }
                    }
                    Content::Few(few) => {
                        for (free, numbers) in few {
                            if let Some(first) = numbers.first() {
                                promise(&mut promises, kind, *free, *first, Of::Equals(numbers));
                            }
                        }
                    }
                },
                Of::Equals(numbers) => {
                    for number in numbers {
                        if !better(&best, score, *number) {
                            break;
                        }
                        if let Some((own, found)) = take(*number)
                            && better(&best, own, *number)
                        {
                            best = Some((own, *number, found));
                        }
                    }
                }
            }
        }
        best.map(|(.., found)| found)
    }
}
