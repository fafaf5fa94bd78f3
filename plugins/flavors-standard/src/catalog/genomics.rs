//! `genomics`: bioinformatics on the command line.

use crate::entry::Entry;

/// The command-line tools, over SSH.
pub const GENOMICS: Entry = Entry {
    name: "genomics",
    description: "Bioinformatics command-line tools: samtools, bcftools, STAR, BWA, freebayes, Picard, PLINK, Bioconductor, Nextflow.",
    vm: false,
    ssh: true,
    web: None,
    s3_prefill: false,
    ai: true,
    gpu_aware: false,
};
