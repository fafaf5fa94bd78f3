//! The acts of scripts. An act is one function, and one line in the list of its file.

use crate::acts::{backup, instance, machine, operator, page, snapshot, volume, webhook};
use crate::setup::USERS;
use crate::sim::Sim;
use std::fmt;
use std::pin::Pin;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_ground::caller::Caller;

/// The function of an act.
type Run = fn(Sim, Args) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Something that a user, the operator or the machine does.
pub struct Act {
    pub name: &'static str,
    /// How often scripts have it, beside the others.
    pub weight: u64,
    pub run: Run,
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares the acts of a file: the function of each, and its weight.
#[macro_export]
macro_rules! acts {
    ($($act:ident $weight:literal),* $(,)?) => {
        pub const ACTS: &[$crate::act::Act] = &[$($crate::act::Act {
            name: stringify!($act),
            weight: $weight,
            run: |sim, args| Box::pin($act(sim, args)),
        }),*];
    };
}

/// All acts, by what they are about.
pub const SUBJECTS: [&[Act]; 8] = [
    instance::ACTS,
    volume::ACTS,
    snapshot::ACTS,
    backup::ACTS,
    page::ACTS,
    webhook::ACTS,
    operator::ACTS,
    machine::ACTS,
];

/// The numbers of an act. Each selects among what is there when the act runs, so that an act means something in any
/// script.
#[derive(Debug, Clone, Copy)]
pub struct Args(pub [u64; 4]);

impl Args {
    /// One of these, by the number in a place.
    pub fn of<T: Copy>(&self, place: usize, from: &[T]) -> Option<T> {
        let n = self.number(place, from.len() as u64);
        from.get(usize::try_from(n).ok()?).copied()
    }

    /// A number below `n`.
    pub fn number(&self, place: usize, n: u64) -> u64 {
        let Self(numbers) = self;
        let number = numbers.get(place).copied().unwrap_or_default();
        number.checked_rem(n).unwrap_or_default()
    }

    /// Whether a bit beside the low ones of a number is set, of which one in `n` is.
    pub fn is_one_in(&self, place: usize, n: u64) -> bool {
        let Self(numbers) = self;
        let number = numbers.get(place).copied().unwrap_or_default();
        (number >> 32).checked_rem(n) == Some(0)
    }

    /// The user who acts, by the first number: the name for traces, and the caller. None if Wharf refuses the user's
    /// key.
    pub fn user(&self, sim: &Sim) -> Option<(&'static str, Caller)> {
        self.caller(sim, self.number(0, USERS.len() as u64))
    }

    /// The owner of an instance.
    pub fn owner(&self, sim: &Sim, instance: &Instance) -> Option<(&'static str, Caller)> {
        self.user_with(sim, instance.owner)
    }

    /// The user with an id.
    pub fn user_with(&self, sim: &Sim, id: UserId) -> Option<(&'static str, Caller)> {
        self.caller(sim, id.0.checked_sub(1)?)
    }

    fn caller(&self, sim: &Sim, n: u64) -> Option<(&'static str, Caller)> {
        let place = usize::try_from(n).ok()?;
        let email = USERS.get(place)?;
        let who = email.split('@').next()?;
        let caller = sim.caller(place, self.number(3, 2));
        if caller.is_none() {
            sim.outside.trace.line(who, "has no valid key");
        }
        Some((who, caller?))
    }
}
