//! Quotas: the most that the instances, volumes and snapshots of one owner hold together.

use super::capacity::Claim;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A value for each quantity that a quota limits.
///
/// A row has the values in their order, and a later version may add some at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(
    from = "Vec<T>",
    into = "Vec<T>",
    bound(
        serialize = "T: Clone + Serialize",
        deserialize = "T: Default + Deserialize<'de>"
    )
)]
pub struct Amounts<T> {
    pub n_instances: T,
    pub n_vcpus: T,
    pub mem_gib: T,
    pub disk_size_gib: T,
    pub n_gpus: T,
    /// SSH ports, ports of web pages, and open ports of VMs.
    pub n_ports: T,
    pub n_volumes: T,
    /// Sizes of volumes.
    pub volume_gib: T,
    pub n_snapshots: T,
    /// Sizes of snapshots.
    pub snapshot_gib: T,
}

/// The quantities that an owner's instances, volumes and snapshots hold.
pub type QuotaUsage = Amounts<u64>;

/// The limits of an owner; `None` means no limit.
pub type QuotaLimits = Amounts<Option<u64>>;

/// A limit of one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum UserLimit {
    /// The limit in the configuration.
    #[default]
    Default,
    Unlimited,
    At(u64),
}

/// Name, requested and nearest available quantity.
pub type Over = (&'static str, u64, u64);

impl<T> Amounts<T> {
    /// Returns the values with the names of the REST interface.
    pub fn fields(self) -> [(&'static str, T); 10] {
        [
            ("n_instances", self.n_instances),
            ("n_vcpus", self.n_vcpus),
            ("mem_gib", self.mem_gib),
            ("disk_size_gib", self.disk_size_gib),
            ("n_gpus", self.n_gpus),
            ("n_ports", self.n_ports),
            ("n_volumes", self.n_volumes),
            ("volume_gib", self.volume_gib),
            ("n_snapshots", self.n_snapshots),
            ("snapshot_gib", self.snapshot_gib),
        ]
    }

    /// Combines the values of each field.
    #[must_use]
    pub fn zip<U, V>(self, other: Amounts<U>, mut f: impl FnMut(T, U) -> V) -> Amounts<V> {
        Amounts {
            n_instances: f(self.n_instances, other.n_instances),
            n_vcpus: f(self.n_vcpus, other.n_vcpus),
            mem_gib: f(self.mem_gib, other.mem_gib),
            disk_size_gib: f(self.disk_size_gib, other.disk_size_gib),
            n_gpus: f(self.n_gpus, other.n_gpus),
            n_ports: f(self.n_ports, other.n_ports),
            n_volumes: f(self.n_volumes, other.n_volumes),
            volume_gib: f(self.volume_gib, other.volume_gib),
            n_snapshots: f(self.n_snapshots, other.n_snapshots),
            snapshot_gib: f(self.snapshot_gib, other.snapshot_gib),
        }
    }
}

impl<T> From<Amounts<T>> for Vec<T> {
    fn from(amounts: Amounts<T>) -> Self {
        amounts
            .fields()
            .into_iter()
            .map(|(_, value)| value)
            .collect()
    }
}

/// Values that are missing at the end are the default.
impl<T: Default> From<Vec<T>> for Amounts<T> {
    fn from(values: Vec<T>) -> Self {
        let (mut values, none) = (values.into_iter(), Amounts::<()>::default());
        none.zip(none, |(), ()| values.next().unwrap_or_default())
    }
}

impl QuotaUsage {
    /// Returns the quantities that a claim holds. Compute counts only while it is claimed.
    pub fn of_claim(claim: &Claim) -> Self {
        let compute = u64::from(claim.compute);
        Self {
            n_instances: 1,
            n_vcpus: compute * u64::from(claim.size.n_vcpus),
            mem_gib: compute * u64::from(claim.size.mem_gib),
            disk_size_gib: u64::from(claim.size.disk_size_gib),
            n_gpus: compute * claim.gpus.len() as u64,
            n_ports: 1 + u64::from(claim.web_port.is_some()),
            ..Self::default()
        }
    }

    /// Returns open ports of a VM.
    pub fn of_ports(open: usize) -> Self {
        Self {
            n_ports: open as u64,
            ..Self::default()
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    #[must_use]
    pub fn less(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

/// Returns the fields that a change of an owner's holdings from `before` to `after` would take above
/// its limit. A field that does not grow is never over, even if the limit was lowered.
pub fn over(
    limits: QuotaLimits,
    used: QuotaUsage,
    before: QuotaUsage,
    after: QuotaUsage,
) -> Vec<Over> {
    let others = used.less(before).fields();
    let (before, after) = (before.fields(), after.fields());
    let changes = before.into_iter().zip(after).zip(others);
    limits
        .fields()
        .into_iter()
        .zip(changes)
        .filter_map(
            |((name, limit), (((_, before), (_, after)), (_, others)))| {
                let available = limit?.saturating_sub(others).max(before);
                (after > available).then_some((name, after, available))
            },
        )
        .collect()
}

impl Amounts<UserLimit> {
    /// Returns the limits of a user.
    #[must_use]
    pub fn over_defaults(self, defaults: QuotaLimits) -> QuotaLimits {
        self.zip(defaults, |own, default| match own {
            UserLimit::Default => default,
            UserLimit::Unlimited => None,
            UserLimit::At(limit) => Some(limit),
        })
    }
}

impl FromStr for UserLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "default" => Ok(Self::Default),
            "unlimited" => Ok(Self::Unlimited),
            number => number
                .parse()
                .map(Self::At)
                .map_err(|_| "must be a number, `unlimited` or `default`"),
        }
    }
}

impl fmt::Display for UserLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Unlimited => f.write_str("unlimited"),
            Self::At(limit) => limit.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Amounts, QuotaLimits, QuotaUsage, UserLimit, over};

    fn used(n_vcpus: u64, disk_size_gib: u64) -> QuotaUsage {
        QuotaUsage {
            n_vcpus,
            disk_size_gib,
            ..QuotaUsage::default()
        }
    }

    #[test]
    fn only_growth_beyond_the_limit_is_over() {
        let limits = QuotaLimits {
            n_vcpus: Some(8),
            ..QuotaLimits::default()
        };
        let none = QuotaUsage::default();
        assert!(over(limits, used(6, 100), none, used(2, 100)).is_empty());
        assert_eq!(
            over(limits, used(6, 0), none, used(3, 0)),
            [("n_vcpus", 3, 2)]
        );
        // A resize counts the instance once.
        assert!(over(limits, used(6, 0), used(4, 0), used(6, 0)).is_empty());
        assert_eq!(
            over(limits, used(6, 0), used(4, 0), used(7, 0)),
            [("n_vcpus", 7, 6)]
        );
        // The limit was lowered below the usage.
        assert!(over(limits, used(20, 0), used(12, 0), used(12, 5)).is_empty());
        assert_eq!(
            over(limits, used(20, 0), used(12, 0), used(13, 0)),
            [("n_vcpus", 13, 12)]
        );
        assert_eq!(
            over(limits, used(20, 0), none, used(1, 0)),
            [("n_vcpus", 1, 0)]
        );
    }

    #[test]
    fn the_limit_of_a_user_replaces_the_default() {
        let defaults = QuotaLimits {
            n_vcpus: Some(8),
            n_gpus: Some(1),
            n_ports: Some(5),
            ..QuotaLimits::default()
        };
        let own = Amounts {
            n_vcpus: UserLimit::Unlimited,
            n_gpus: UserLimit::At(0),
            ..Amounts::default()
        };
        let limits = own.over_defaults(defaults);
        assert_eq!(
            (limits.n_vcpus, limits.n_gpus, limits.n_ports),
            (None, Some(0), Some(5))
        );
        for text in ["default", "unlimited", "7"] {
            let parsed: UserLimit = text.parse().unwrap();
            assert_eq!(parsed.to_string(), text);
        }
        assert!("-1".parse::<UserLimit>().is_err());
    }
}
