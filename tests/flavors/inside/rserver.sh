#!/bin/bash
# The command-line tools beside R, on made-up files.
set -euo pipefail
cd "$(mktemp -d)"
printf '>chr1\nACGTACGTAC\n' >genome.fa
[ "$(samtools faidx genome.fa chr1:2-4 | tail -n 1)" = CGT ]
printf '##fileformat=VCFv4.2\n##contig=<ID=1,length=10>\n##FORMAT=<ID=GT,Number=1,Type=String,Description="G">\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\n1\t4\tplace\tA\tT\t.\t.\t.\tGT\t0/1\t1/1\n' >calls.vcf
[ "$(bcftools query -f '%POS' -i 'COUNT(GT="alt")=2' calls.vcf)" = 4 ]
[ "$(printf '1\t3\t5\n' | bedtools intersect -u -a calls.vcf -b stdin | cut -f 2)" = 4 ]
plink1.9 --vcf calls.vcf --freq counts --allow-no-sex >/dev/null
[ "$(awk '$2 == "place" { print $5 + $6 }' plink.frq.counts)" = 4 ]
plink2 --vcf calls.vcf --freq --out two >/dev/null
grep -qw 0.75 two.afreq
# The user installs packages without sudo.
[ "$(Rscript -e 'cat(.libPaths()[1])')" = "$HOME/R/library" ]
