//! The known field that an unknown one most likely means.

/// The least similarity of a suggestion; 1 is equal.
const LEAST: f64 = 0.75;
/// The longest name that is compared, in bytes. A client decides its length.
const LONGEST: usize = 40;

/// The most similar of the known names, if one is similar at all.
pub fn nearest<'a>(field: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    if field.len() > LONGEST {
        return None;
    }
    let field = field.to_ascii_lowercase();
    let similar = known.map(|name| (similarity(&field, name), name.as_str()));
    let best = similar.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(similarity, _)| *similarity >= LEAST)
        .map(|(_, name)| name)
}

fn similarity(field: &str, name: &str) -> f64 {
    // A part of the name, such as `vcpus` of `n_vcpus`, is what people leave out.
    let part = field.len() >= 3 && name.split('_').any(|part| part == field);
    if part {
        1.0
    } else {
        strsim::jaro_winkler(field, name).max(strsim::normalized_damerau_levenshtein(field, name))
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn likely_names_are_suggested_and_others_are_not() {
        let known = [
            "name",
            "n_vcpus",
            "mem_gib",
            "disk_size_gib",
            "gpu_model",
            "flavor",
            "public_key",
            "resource_type",
            "cpu_tier",
        ];
        let known = known.map(str::to_owned);
        let nearest = |field: &str| nearest(field, known.iter());
        for (given, meant) in [
            ("vcpus", "n_vcpus"),
            ("n_cpus", "n_vcpus"),
            ("nVcpus", "n_vcpus"),
            ("mem", "mem_gib"),
            ("disk", "disk_size_gib"),
            ("disk_gib", "disk_size_gib"),
            ("flavour", "flavor"),
            ("gpu", "gpu_model"),
            ("publicKey", "public_key"),
            ("type", "resource_type"),
        ] {
            assert_eq!(nearest(given), Some(meant), "{given}");
        }
        for unknown in ["colour", "x", "", "id", "a/b", &"name".repeat(20)] {
            assert_eq!(nearest(unknown), None, "{unknown}");
        }
    }
}
