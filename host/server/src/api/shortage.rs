//! A lack of capacity or quota as the wire has it: specification 2.7.

use serde::Serialize;
use std::collections::BTreeMap;
use wharf_domain::error::Shortfall;

/// The value of `detail` in the answer to a refused request.
#[derive(Serialize)]
pub struct ShortageWire<'a> {
    message: String,
    bottleneck: Vec<&'a str>,
    requested: BTreeMap<&'a str, u64>,
    nearest_available: BTreeMap<&'a str, u64>,
}

impl<'a> ShortageWire<'a> {
    /// The shortage of the nearest node.
    pub fn of_node(shortfall: &'a Shortfall) -> Self {
        Self::new("Insufficient resources", "available", shortfall)
    }

    /// The shortage of the owner's quota.
    pub fn of_quota(shortfall: &'a Shortfall) -> Self {
        Self::new("Quota exceeded", "left of your quota", shortfall)
    }

    fn new(what: &str, left: &str, shortfall: &'a Shortfall) -> Self {
        let Shortfall {
            fields,
            freeing,
            limits_broken,
            no_image,
            volumes,
        } = shortfall;
        let bottleneck: Vec<&str> = fields.iter().map(|row| row.0).collect();
        let names = bottleneck.join(", ");
        let freeing = if *freeing {
            " Deleted instances are still being removed; try again shortly."
        } else {
            ""
        };
        let broken = if *limits_broken {
            " A host takes nothing new at present, because it does not hold the sizes of disks. The operator has to \
             mend it."
        } else {
            ""
        };
        let message = match no_image {
            Some(flavor) => format!(
                "The flavor {flavor} is not available: no node that can run this instance has its \
                 image. The operator can add it."
            ),
            None if !volumes.is_empty() => {
                let short = names.replace(", volumes", "");
                let bound = match &**volumes {
                    [volume] => format!("the volume {volume} must be on its host"),
                    volumes => format!("the volumes {} must be on their host", volumes.join(", ")),
                };
                let why = match &*short {
                    "volumes" => "takes no such instance".to_owned(),
                    short => format!("has not enough {short} {left}"),
                };
                format!("{what}: an instance with {bound}, which {why}.{freeing}{broken}")
            }
            None => format!("{what}: not enough {names} {left}.{freeing}{broken}"),
        };
        Self {
            message,
            bottleneck,
            requested: fields.iter().map(|row| (row.0, row.1)).collect(),
            nearest_available: fields.iter().map(|row| (row.0, row.2)).collect(),
        }
    }
}
