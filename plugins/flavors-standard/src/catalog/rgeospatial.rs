//! `rgeospatial`: R in the browser, with geospatial packages.

use super::rserver::R_WEB;
use crate::entry::Entry;

/// The R server with geospatial packages.
pub const RGEOSPATIAL: Entry = Entry {
    name: "rgeospatial",
    description: "R web IDE server with geospatial R packages.",
    vm: false,
    ssh: false,
    web: Some(R_WEB),
    s3_prefill: false,
    ai: true,
    gpu_aware: false,
};
