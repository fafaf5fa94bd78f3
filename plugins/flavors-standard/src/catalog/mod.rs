//! The flavors, one file each.

mod base;
mod datascience;
mod datasciencemarimo;
mod genomics;
mod jupyterlab;
mod marimo;
mod rgeospatial;
mod rserver;

use crate::entry::Entry;

/// All of them.
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
