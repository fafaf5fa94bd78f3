//! Texts of guests, cleaned for logs and rows.

/// Replaces control characters by spaces, and cuts the text to `most` bytes.
pub fn clean(text: &str, most: usize) -> String {
    let mut cut = text.len().min(most);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let kept = text.get(..cut).unwrap_or_default();
    kept.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Longest text of a phase or an error, bytes.
pub const MAX_TEXT: usize = 1000;

/// Cleans a text of a phase or an error.
pub fn short(text: &str) -> String {
    clean(text, MAX_TEXT)
}

/// Whether a name has only `a-z`, `0-9` and single hyphens inside.
pub fn is_kebab(text: &str, most: usize) -> bool {
    !text.is_empty()
        && text.len() <= most
        && text.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning() {
        assert_eq!(clean("a\nb\u{1b}[2J", 100), "a b [2J");
        assert_eq!(clean("äöü", 3), "ä");
        assert_eq!(clean("äöü", 0), "");
    }

    #[test]
    fn kebab() {
        assert!(is_kebab("data-science2", 63));
        for wrong in ["", "-a", "a-", "a--b", "A", "a_b", "ä"] {
            assert!(!is_kebab(wrong, 63), "{wrong}");
        }
        assert!(!is_kebab("aaaa", 3));
    }
}
