//! The offer of this installation: rates, GPU models, and the room for new instances.

use super::App;
use wharf_domain::capacity::{CpuTier, Size};
use wharf_domain::instance::ResourceType;
use wharf_domain::money::{Rate, Rates};
use wharf_domain::placement::PlacementRequest;
use wharf_ground::caller::Caller;

/// The offer of this installation.
#[derive(Debug)]
pub struct Offered {
    /// Tiers that a node offers, with their rates.
    pub cpu_tiers: Vec<(CpuTier, Rates)>,
    /// GPU models with the rate of one GPU.
    pub gpu_models: Vec<(String, Rate)>,
    /// The free capacity of the largest node. A kind of instance that no node runs is left out.
    pub largest_free: Vec<(CpuTier, ResourceType, Size)>,
}

impl App {
    /// Returns the offer.
    pub fn offer(&self, caller: &Caller) -> Offered {
        let config = self.config();
        let offers = |tier| {
            let nodes = config.node.iter().filter(|node| !node.retired);
            nodes.flat_map(|node| &node.cpu_tiers).any(|t| *t == tier)
        };
        let tiers = CpuTier::ALL.into_iter().filter(|tier| offers(*tier));
        let rate = |model: String| {
            let rates = config.rates.rates(CpuTier::GeneralPurpose, Some(&model));
            (model, rates.gpu)
        };
        let mut largest_free = Vec::new();
        for cpu_tier in tiers.clone() {
            for resource_type in ResourceType::ALL {
                let like = PlacementRequest {
                    owner: caller.user,
                    resource_type,
                    size: Size::default(),
                    cpu_tier,
                    gpu_model: None,
                    flavor: String::new(),
                    web: false,
                    images: Vec::new(),
                    nodes: None,
                };
                let free = self.inventory.largest_free(&like);
                largest_free.extend(free.map(|free| (cpu_tier, resource_type, free)));
            }
        }
        Offered {
            cpu_tiers: tiers
                .map(|tier| (tier, config.rates.rates(tier, None)))
                .collect(),
            gpu_models: self.gpu_models().into_iter().map(rate).collect(),
            largest_free,
        }
    }
}
