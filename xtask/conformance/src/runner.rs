//! Runs checks, concurrently where they do not disturb each other.

use super::check::{Basis, Check, Outcome, Skip, Verdict};
use super::context::{Context, Shared};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Runs the checks concurrently, and exclusive checks one by one after them.
pub fn run(
    checks: &[Check],
    shared: &Shared,
    jobs: usize,
    interrupted: &AtomicBool,
) -> Vec<Outcome> {
    let (exclusive, shareable): (Vec<_>, Vec<_>) = checks.iter().partition(|check| check.exclusive);
    let outcomes = Mutex::new(Vec::with_capacity(checks.len()));
    for (group, jobs) in [(shareable, jobs.max(1)), (exclusive, 1)] {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some(check) = group.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if interrupted.load(Ordering::Relaxed) {
                            return;
                        }
                        let mut outcome = run_one(check, shared);
                        if interrupted.load(Ordering::Relaxed)
                            && matches!(outcome.verdict, Verdict::Failed(_))
                        {
                            outcome.verdict = Verdict::Skipped("interrupted".to_owned());
                        }
                        outcomes
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(outcome);
                    }
                });
            }
        });
    }
    outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

fn run_one(check: &Check, shared: &Shared) -> Outcome {
    let begin = Instant::now();
    // A panic fails this check only, and its instances are still deleted.
    let result = catch_unwind(AssertUnwindSafe(|| (check.run)(&Context::new(shared))));
    let verdict = match result {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(error)) => match error.downcast_ref::<Skip>() {
            Some(Skip(why)) => Verdict::Skipped(why.clone()),
            None => Verdict::Failed(format!("{error:#}")),
        },
        Err(_) => Verdict::Failed("the check panicked".to_owned()),
    };
    Outcome {
        section: check.section,
        name: check.name.clone(),
        basis: check.basis,
        verdict,
        time: begin.elapsed(),
    }
}

/// Selects the checks whose section and name contain `filter`. With `specification_only`, selects only
/// rules of the specification itself.
pub fn choose(checks: Vec<Check>, filter: Option<&str>, specification_only: bool) -> Vec<Check> {
    checks
        .into_iter()
        .filter(|check| {
            filter.is_none_or(|text| format!("{} {}", check.section, check.name).contains(text))
                && (!specification_only || check.basis == Basis::Specification)
        })
        .collect()
}
