//! Bodies for the report: without passwords, and shortened.

use serde_json::{Value, json};

const LONGEST: usize = 400;
const SECRETS: [&str; 2] = ["original_service_password", "key"];

/// Formats a body for a report.
pub fn redacted(body: &Value) -> String {
    let mut body = body.clone();
    hide(&mut body);
    let mut text = body.to_string();
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if SECRETS.contains(&key.as_str()) && inner.is_string() {
                    *inner = json!("(hidden)");
                } else {
                    hide(inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, redacted};
    use serde_json::json;

    #[test]
    fn passwords_are_hidden_wherever_they_stand() {
        let one = json!({ "original_service_password": "pw", "name": "n" });
        for body in [one.clone(), json!([one.clone()]), json!({ "x": one })] {
            let text = redacted(&body);
            assert!(!text.contains("pw") && text.contains("(hidden)"), "{text}");
        }
        let long = redacted(&json!("ä".repeat(1000)));
        assert_eq!(long.chars().count(), LONGEST + 1);
    }
}
