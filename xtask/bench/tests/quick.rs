//! A quick run: every measurement works. Its figures decide nothing.

#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn a_quick_run_fills_the_table() {
    let report = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_wharf-bench"))
        .args(["run", "--quick", "--report"])
        .arg(report.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let json = std::fs::read(report.path().join("bench.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() >= 10, "{rows:?}");
    for row in rows {
        // Small sizes may cost less memory or time than can be measured.
        let what = row["what"].as_str().unwrap();
        let least = if what.starts_with("memory") || what.contains("% of a core") {
            0.0
        } else {
            1e-9
        };
        assert!(row["value"].as_f64().unwrap() >= least, "{row}");
    }
}
