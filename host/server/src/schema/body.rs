//! Parsing of request bodies into JSON objects. Unlike a plain map, it detects duplicate keys.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use wharf_domain::error::{FieldErrors, NON_FIELD_ERRORS};

/// The JSON object of a request.
#[derive(Debug, Default, PartialEq)]
pub struct Body {
    /// Members of the object. A duplicate key has its last value.
    pub fields: Map<String, Value>,
    /// Keys that occur more than once.
    pub repeated: Vec<String>,
}

impl Body {
    /// Parses a body. An error applies to the body as a whole.
    pub fn parse(bytes: &[u8]) -> Result<Self, FieldErrors> {
        serde_json::from_slice(bytes).map_err(|error| {
            let message = match error.classify() {
                // The visitor below only rejects values that are not objects.
                serde_json::error::Category::Data => "must be a JSON object".to_owned(),
                _ if bytes.trim_ascii().is_empty() => {
                    "must be a JSON object; the body is empty".to_owned()
                }
                _ => format!("is not valid JSON: {error}"),
            };
            FieldErrors::one(NON_FIELD_ERRORS, message)
        })
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor)
    }
}

/// Repeated keys, each once, in their order. A client decides their number, so a key is looked up by its
/// hash.
#[derive(Debug)]
struct Repeated<K> {
    keys: Vec<K>,
    known: HashSet<K>,
}

impl<K> Default for Repeated<K> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            known: HashSet::new(),
        }
    }
}

impl<K: Hash + Eq + Clone> Repeated<K> {
    fn note(&mut self, key: K) {
        if self.known.insert(key.clone()) {
            self.keys.push(key);
        }
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Body;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
        let (mut fields, mut repeated) = (Map::new(), Repeated::default());
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            if fields.insert(key.clone(), value).is_some() {
                repeated.note(key);
            }
        }
        Ok(Body {
            fields,
            repeated: repeated.keys,
        })
    }

    // Read the array to its end, to tell invalid JSON from a valid array.
    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Body, A::Error> {
        while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self))
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, Repeated};
    use std::cell::Cell;
    use std::hash::{Hash, Hasher};

    fn error(text: &str) -> String {
        let errors = Body::parse(text.as_bytes()).unwrap_err();
        assert_eq!(errors.0.len(), 1);
        errors.0["non_field_errors"][0].clone()
    }

    #[test]
    fn objects_only() {
        for text in ["[]", "[1, {}]", "null", "4", "\"a\"", "true", "1.5", "-2"] {
            assert_eq!(error(text), "must be a JSON object", "{text}");
        }
        assert_eq!(error(" "), "must be a JSON object; the body is empty");
        for text in [
            "{",
            "{\"a\":}",
            "{} x",
            "{'a': 1}",
            "[1,",
            "nul",
            "{\"a\": 1e999}",
            "\u{feff}{}",
        ] {
            assert!(error(text).starts_with("is not valid JSON"), "{text}");
        }
        assert!(Body::parse(b"{\"a\": \"\xff\"}").is_err());
        let deep = format!("{{\"a\": {}", "[".repeat(100_000));
        assert!(error(&deep).starts_with("is not valid JSON"));
    }

    #[test]
    fn the_number_of_comparisons_grows_with_the_number_of_keys() {
        #[derive(Debug, Clone)]
        struct ComparedKey(usize);
        thread_local!(static COMPARED: Cell<usize> = const { Cell::new(0) });
        impl PartialEq for ComparedKey {
            fn eq(&self, other: &Self) -> bool {
                COMPARED.set(COMPARED.get() + 1);
                self.0 == other.0
            }
        }
        impl Eq for ComparedKey {}
        impl Hash for ComparedKey {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }
        const KEYS: usize = 10_000;
        let mut repeated = Repeated::default();
        for n in (0..KEYS).chain(0..KEYS) {
            repeated.note(ComparedKey(n));
        }
        assert_eq!(repeated.keys.len(), KEYS);
        assert!(COMPARED.get() < 10 * KEYS, "{}", COMPARED.get());
    }

    #[test]
    fn keys_given_twice_are_noted() {
        let body = Body::parse(br#"{"a": 1, "b": 2, "a": 3, "a": 4}"#).unwrap();
        assert_eq!(body.repeated, ["a"]);
        assert_eq!(body.fields["a"], 4);
        assert!(Body::parse(b" {} ").unwrap().fields.is_empty());
    }
}
