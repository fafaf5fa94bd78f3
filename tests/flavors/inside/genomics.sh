#!/bin/bash
# A made-up chromosome, and reads with one different base. Aligners find the origin of the reads,
# callers that base, and the other tools similar known results.
set -euo pipefail
cd "$(mktemp -d)"
exec 3>&1 1>log 2>&1
trap 'status=$?; [ "$status" = 0 ] || { echo "line $LINENO:"; tail -n 30 log; } >&3; exit "$status"' EXIT
is() { [ "$2" = "$3" ] || { echo "$1: $2 rather than $3"; exit 1; }; }

BASES=20000 READS=4000 SITE=10000
python3 - "$BASES" "$READS" "$SITE" <<'END'
import random
import sys

bases, reads, site = map(int, sys.argv[1:])
random.seed(7)
reference = random.choices("ACGT", k=bases)
with open("genome.fa", "w") as file:
    file.write(">chr1\n")
    for start in range(0, bases, 60):
        file.write("".join(reference[start : start + 60]) + "\n")
reference[site - 1] = {"A": "C", "C": "G", "G": "T", "T": "A"}[reference[site - 1]]
with open("reads.fq", "w") as file:
    for number in range(reads):
        start = random.randrange(bases - 100)
        read = "".join(reference[start : start + 100])
        # A quality character that distinguishes the two encodings.
        file.write(f"@read{number}\n{read}\n+\n{'I' * 99}?\n")

# Twelve people. The ill ones have the rare allele of the second place; the other places are
# unrelated.
with open("study.map", "w") as file:
    for place in (1, 2, 3):
        file.write(f"1 place{place} 0 {place * 1000}\n")
with open("study.ped", "w") as file:
    for number in range(12):
        ill = number % 2
        places = ["A A" if number % 4 < 2 else "A G", "T T" if ill else "C C", "G G" if number < 6 else "G C"]
        file.write(f"family{number} person 0 0 1 {ill + 1} {' '.join(places)}\n")
END
samtools faidx genome.fa

# Alignment
bwa index genome.fa
bwa mem -R '@RG\tID:1\tSM:somebody' genome.fa reads.fq | samtools sort -o reads.bam
samtools index reads.bam
is "bwa, samtools" "$(samtools view -c -F 4 reads.bam)" "$READS"
is minimap2 "$(minimap2 -ax sr genome.fa reads.fq | samtools view -c -F 4)" "$READS"
bowtie2-build genome.fa bowtie
is bowtie2 "$(bowtie2 -x bowtie -U reads.fq | samtools view -c -F 4)" "$READS"
STAR --runMode genomeGenerate --genomeDir star --genomeFastaFiles genome.fa --genomeSAindexNbases 6
STAR --genomeDir star --readFilesIn reads.fq --outFileNamePrefix star/
is STAR "$(sed -n 's/.*Uniquely mapped reads number |\t//p' star/Log.final.out)" "$READS"
is pysam "$(python3 -c 'import pysam; print(pysam.AlignmentFile("reads.bam").count())')" "$READS"

# Variants
bcftools mpileup -f genome.fa reads.bam | bcftools call -mv -Oz -o calls.vcf.gz
is bcftools "$(bcftools query -f '%CHROM:%POS' calls.vcf.gz)" "chr1:$SITE"
freebayes -f genome.fa reads.bam >freebayes.vcf
is freebayes "$(bcftools query -f '%CHROM:%POS' freebayes.vcf)" "chr1:$SITE"
tabix -p vcf calls.vcf.gz
is tabix "$(tabix calls.vcf.gz "chr1:$((SITE - 9))-$((SITE + 9))" | wc -l)" 1
printf 'chr1\t%s\t%s\n' "$((SITE - 10))" "$((SITE + 10))" >place.bed
is bedtools "$(bedtools intersect -u -a calls.vcf.gz -b place.bed | wc -l)" 1

# Studies
plink1.9 --file study --make-bed --out study
plink1.9 --bfile study --fisher --allow-no-sex --out study
is plink1.9 "$(sort -gk 8 study.assoc.fisher | awk '$1 == 1 { print $2; exit }')" place2
plink2 --bfile study --freq --out study
is plink2 "$(awk 'NR == 1 { for (n = 1; n <= NF; n++) if ($n == "ALT_FREQS") column = n }
    $2 == "place2" { print $column }' study.afreq)" 0.5

# Reads
PicardCommandLine CollectAlignmentSummaryMetrics R=genome.fa I=reads.bam O=metrics
is picard "$(awk '$1 == "UNPAIRED" { print $2 }' metrics)" "$READS"
fastp -i reads.fq -o clean.fq --json fastp.json --html fastp.html
is fastp "$(grep -c '^@read' clean.fq)" "$READS"
fastqc --quiet reads.fq
python3 -m zipfile -e reads_fastqc.zip .
is fastqc "$(grep -c 'PASS.*Per base sequence quality' reads_fastqc/summary.txt)" 1
is seqtk "$(seqtk comp genome.fa | cut -f 2)" "$BASES"

# Bioconductor
Rscript - "$SITE" <<'END'
suppressMessages({
    library(DESeq2); library(edgeR); library(limma); library(Rsamtools); library(VariantAnnotation)
})
site <- as.integer(commandArgs(TRUE))
variants <- rowRanges(readVcf("calls.vcf.gz"))
stopifnot(start(variants) == site)
reads <- scanBam("reads.bam")[[1]]
covering <- GRanges("chr1", IRanges(reads$pos, width = 100))
stopifnot(countOverlaps(variants, covering) > 5)

# The first 20 of 200 genes have ten times the counts in the second half of the samples.
set.seed(7)
counts <- matrix(rnbinom(200 * 8, mu = 200, size = 50), 200)
counts[1:20, 5:8] <- counts[1:20, 5:8] * 10L
group <- factor(rep(c("a", "b"), each = 4))
found <- results(DESeq(DESeqDataSetFromMatrix(counts, DataFrame(group), ~group), quiet = TRUE))
first <- function(p) setequal(order(p)[1:20], 1:20)
stopifnot(first(found$pvalue))
edge <- exactTest(estimateDisp(calcNormFactors(DGEList(counts, group = group))))
stopifnot(first(edge$table$PValue))
design <- model.matrix(~group)
linear <- eBayes(lmFit(voom(calcNormFactors(DGEList(counts)), design), design))
stopifnot(first(linear$p.value[, 2]))
END

# Nextflow's Java, and Nextflow: all of it, or its launcher, which downloads it at its first use.
java -version
grep -aq '^NXF_VER=' "$(command -v nextflow)"
echo "all is found" >&3
