//! `genomics`: bioinformatics on the command line.

use crate::entry::Entry;

/// The tools over SSH.
pub const GENOMICS: Entry = Entry {
    name: "genomics",
    description: "Bioinformatics command-line tools: samtools, GATK, STAR, PLINK, Nextflow, Bioconductor.",
    vm: false,
    ssh: true,
    web: None,
    s3_prefill: false,
    ai: true,
    gpu_aware: false,
};
