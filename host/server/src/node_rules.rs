//! The node's rules, which keep instances from the node and from each other. Only root sees them.

use std::process::{Command, Stdio};
use wharf_domain::ids::NodeId;
use wharf_operations::check::{ConfigFinding, Severity};

/// The page with the rules.
const REMEDY: &str = "load the rules of docs/networking.md with nft";

/// Findings about rules that these nodes on this machine lack. With `tell_unknown`, also that they cannot
/// be seen.
pub fn missing(nodes: &[NodeId], tell_unknown: bool) -> Vec<ConfigFinding> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let (severity, problem, remedy) = match ruleset() {
        Ok(text) => {
            let lacking = lacking(&text);
            if lacking.is_empty() {
                return Vec::new();
            }
            let problem = format!("the node's rules are missing: {}", lacking.join("; "));
            (Severity::Error, problem, REMEDY)
        }
        Err(_) if !tell_unknown => return Vec::new(),
        Err(why) => {
            let problem = format!("the node's rules are not checked: {why}");
            (
                Severity::Warning,
                problem,
                "run `wharf check` as root, with nft installed",
            )
        }
    };
    let finding = |node: &NodeId| ConfigFinding {
        severity,
        setting: format!("node.{node}"),
        problem: problem.clone(),
        remedy: remedy.to_owned(),
    };
    nodes.iter().map(finding).collect()
}

fn ruleset() -> Result<String, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let nft = Command::new("nft")
        .args(["list", "ruleset"])
        .env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"))
        .stdin(Stdio::null())
        .output();
    let output = nft.map_err(|error| format!("nft: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// The kinds of rules that a ruleset lacks, by their effect.
fn lacking(ruleset: &str) -> Vec<&'static str> {
    let mut hook = "";
    let mut drops: Vec<(&str, &str)> = Vec::new();
    for line in ruleset.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once(" hook ") {
            hook = rest.split(' ').next().unwrap_or_default();
        }
        if line.split(' ').any(|word| word == "drop") && line.contains("iifname \"whf*\"") {
            drops.push((hook, line));
        }
    }
    let has = |hook: &str, part: &str| {
        drops
            .iter()
            .any(|(at, rule)| *at == hook && rule.contains(part))
    };
    let mut lacking = Vec::new();
    for (hook, part, effect) in [
        ("input", "", "instances reach services of the node"),
        (
            "forward",
            "169.254.0.0/16",
            "instances reach metadata services",
        ),
        ("forward", "10.0.0.0/8", "instances reach private networks"),
        (
            "forward",
            "oifname \"whf*\"",
            "instances reach those of other owners",
        ),
    ] {
        if !has(hook, part) {
            lacking.push(effect);
        }
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::lacking;

    const DOCUMENTED: &str = include_str!("../../../docs/networking.md");

    #[test]
    fn the_documented_rules_are_complete_and_each_is_missed() {
        assert!(lacking(DOCUMENTED).is_empty(), "{:?}", lacking(DOCUMENTED));
        assert_eq!(lacking("").len(), 4);
        for part in ["hook input", "169.254.0.0/16", "10.0.0.0/8"] {
            assert_eq!(lacking(&DOCUMENTED.replace(part, "x")).len(), 1, "{part}");
        }
        // As nft prints it.
        let printed = "chain input {\ntype filter hook input priority -5; policy accept;\n\
            iifname \"whf*\" drop comment \"the node itself\"\n}";
        assert_eq!(lacking(printed).len(), 3);
    }
}
