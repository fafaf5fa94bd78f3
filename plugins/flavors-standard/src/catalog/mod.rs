//! The flavors, one per file.

mod base;
mod datascience;
mod datasciencemarimo;
mod genomics;
mod jupyterlab;
mod marimo;
mod rgeospatial;
mod rserver;

use crate::entry::Entry;

/// All flavors.
pub const ALL: &[Entry] = &[
    base::BASE,
    datascience::DATASCIENCE,
    marimo::MARIMO,
    datasciencemarimo::DATASCIENCEMARIMO,
    jupyterlab::JUPYTERLAB,
    rserver::RSERVER,
    rgeospatial::RGEOSPATIAL,
    genomics::GENOMICS,
];
