//! Instructions of a Containerfile that are needed when an image is imported instead of built.

/// Instructions that set metadata of the image; an import takes them as `changes`.
const DESCRIBING: [&str; 8] = [
    "CMD",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "LABEL",
    "STOPSIGNAL",
    "USER",
    "WORKDIR",
];

/// The default of `ARG BASE`.
pub(crate) fn base(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix("ARG BASE="))
        .map(str::trim)
}

/// The instructions that set metadata, one line each.
pub(crate) fn describing(text: &str) -> Vec<&str> {
    let first_word = |line: &str| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    text.lines()
        .map(str::trim)
        .filter(|line| DESCRIBING.contains(&first_word(line).as_str()))
        .collect()
}

/// The variables that the image gives to its first process. Values have no quotes.
pub(crate) fn environment(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ENV "));
    lines
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{base, describing, environment};

    #[test]
    fn an_instruction_may_set_several_variables() {
        let text = "ENV LANG=C.UTF-8\nRUN ENV x\nENV A=b C=d\n";
        assert_eq!(environment(text), ["LANG=C.UTF-8", "A=b", "C=d"]);
    }

    #[test]
    fn base_and_describing_instructions_are_found() {
        let text =
            "# ENV no\nARG BASE=python:3\nFROM ${BASE}\nRUN a \\\n && b\nENV A=b\nCMD [\"x\"]\n";
        assert_eq!(base(text), Some("python:3"));
        assert_eq!(describing(text), ["ENV A=b", "CMD [\"x\"]"]);
        assert_eq!(base("FROM scratch\n"), None);
    }
}
