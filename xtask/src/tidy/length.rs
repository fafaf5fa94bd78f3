//! A file that outgrows this holds more than one thing.

use super::{File, Finding};

const MOST_LINES: usize = 500;

pub(super) fn check(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let code = file.is_rust() || file.path.ends_with(".wit");
    (code && lines > MOST_LINES).then(|| Finding {
        path: file.path.clone(),
        line: MOST_LINES,
        message: format!("{lines} lines; at most {MOST_LINES}: one file, one thing"),
    })
}

#[cfg(test)]
mod tests {
    use super::{File, MOST_LINES, check};

    #[test]
    fn a_file_may_be_as_long_as_the_limit_and_no_longer() {
        let file = |lines| File {
            path: "a.rs".to_owned(),
            text: "//\n".repeat(lines),
        };
        assert_eq!(check(&file(MOST_LINES)), None);
        assert!(check(&file(MOST_LINES + 1)).is_some());
    }
}
