//! `[rates]`: prices per hour in USD.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use wharf_domain::capacity::CpuTier;
use wharf_domain::money::{Rate, Rates};

/// Rates per CPU tier and GPU model. An omitted rate keeps its default.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RatesConfig {
    /// Rates of the tier `general-purpose`. Default: vCPU 0.012, RAM 0.004, storage 0.00014.
    #[serde(rename = "general-purpose")]
    pub general_purpose: TierRates,
    /// Rates of the tier `high-performance`. Default: vCPU 0.024, RAM 0.006, storage 0.00014.
    #[serde(rename = "high-performance", deserialize_with = "high_performance")]
    pub high_performance: TierRates,
    /// Rate of one GPU by model name. Entries extend or replace the defaults.
    #[serde(deserialize_with = "gpus")]
    pub gpu: BTreeMap<String, Decimal>,
}

/// Rates of one CPU tier, in USD per hour.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TierRates {
    /// Rate of one vCPU.
    pub vcpu: Decimal,
    /// Rate of one GiB of RAM.
    pub ram: Decimal,
    /// Rate of one GiB of disk.
    pub storage: Decimal,
}

const GENERAL_PURPOSE: TierRates = TierRates {
    vcpu: Decimal(Rate(12_000_000)),
    ram: Decimal(Rate(4_000_000)),
    storage: Decimal(Rate(140_000)),
};

const HIGH_PERFORMANCE: TierRates = TierRates {
    vcpu: Decimal(Rate(24_000_000)),
    ram: Decimal(Rate(6_000_000)),
    storage: Decimal(Rate(140_000)),
};

/// Default rates of common GPU models, so that most nodes need no `[rates]`.
const GPUS: [(&str, u64); 14] = [
    ("A10", 750_000_000),
    ("A100", 1_690_000_000),
    ("A40", 440_000_000),
    ("B200", 4_990_000_000),
    ("H100", 2_490_000_000),
    ("H200", 3_290_000_000),
    ("L4", 430_000_000),
    ("L40", 890_000_000),
    ("L40S", 990_000_000),
    ("RTX 3090", 290_000_000),
    ("RTX 4090", 490_000_000),
    ("RTX A6000", 590_000_000),
    ("T4", 290_000_000),
    ("V100", 490_000_000),
];

impl Default for TierRates {
    fn default() -> Self {
        GENERAL_PURPOSE
    }
}

impl Default for RatesConfig {
    fn default() -> Self {
        Self {
            general_purpose: GENERAL_PURPOSE,
            high_performance: HIGH_PERFORMANCE,
            gpu: default_gpus(),
        }
    }
}

fn default_gpus() -> BTreeMap<String, Decimal> {
    GPUS.iter()
        .map(|(model, rate)| ((*model).to_owned(), Decimal(Rate(*rate))))
        .collect()
}

fn gpus<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<String, Decimal>, D::Error> {
    let mut all = default_gpus();
    all.extend(BTreeMap::<String, Decimal>::deserialize(d)?);
    Ok(all)
}

fn high_performance<'de, D: Deserializer<'de>>(d: D) -> Result<TierRates, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct GivenRates {
        vcpu: Option<Decimal>,
        ram: Option<Decimal>,
        storage: Option<Decimal>,
    }
    let given = GivenRates::deserialize(d)?;
    Ok(TierRates {
        vcpu: given.vcpu.unwrap_or(HIGH_PERFORMANCE.vcpu),
        ram: given.ram.unwrap_or(HIGH_PERFORMANCE.ram),
        storage: given.storage.unwrap_or(HIGH_PERFORMANCE.storage),
    })
}

/// An exact decimal, written as a TOML number or string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal(pub Rate);

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Integer(u64),
            Float(f64),
            Text(String),
        }
        // `Display` gives the shortest decimal that parses to the float, which is the one written.
        let text = match Given::deserialize(d)? {
            Given::Integer(n) => n.to_string(),
            Given::Float(f) => f.to_string(),
            Given::Text(t) => t,
        };
        Rate::parse(&text)
            .map(Self)
            .map_err(|why| serde::de::Error::custom(format!("`{text}` {why}")))
    }
}

impl RatesConfig {
    /// Returns the rates of a new instance, which keeps them for life.
    pub fn rates(&self, tier: CpuTier, gpu_model: Option<&str>) -> Rates {
        let of = match tier {
            CpuTier::GeneralPurpose => self.general_purpose,
            CpuTier::HighPerformance => self.high_performance,
        };
        Rates {
            vcpu: of.vcpu.0,
            mem: of.ram.0,
            disk: of.storage.0,
            gpu: gpu_model
                .and_then(|model| self.gpu.get(model))
                .map_or(Rate(0), |d| d.0),
        }
    }
}
