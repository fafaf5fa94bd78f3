//! Parts of an answer, by JSON pointer. The rest of it is skipped: as a tree of values, an answer can take a
//! hundred times its length.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;
use std::fmt;

/// Takes the texts, numbers and flags at the pointers, once from each item of a list, or once from the whole
/// answer. With an empty first pointer, the items of an object are its keys. None: the answer is not complete
/// JSON, or has no such list.
pub fn read(
    body: &[u8],
    items: Option<&str>,
    pointers: &[&str],
    each: &mut dyn FnMut(&[Option<Value>]),
) -> Option<()> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let mut found = vec![None; pointers.len()];
    let has_parts = match items {
        Some(rest) => Items {
            rest,
            pointers,
            each: &mut *each,
        }
        .deserialize(&mut json),
        None => Parts::new(pointers, &mut found)
            .deserialize(&mut json)
            .map(|()| true),
    };
    let has_parts = has_parts.ok()?;
    json.end().ok()?;
    if items.is_none() {
        each(&found);
    }
    has_parts.then_some(())
}

/// The rest of a pointer whose next part is this key.
fn after<'p>(pointer: &'p str, key: &str) -> Option<&'p str> {
    let rest = pointer.strip_prefix('/')?;
    let (part, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_next = if part.contains('~') {
        part.replace("~1", "/").replace("~0", "~") == key
    } else {
        part == key
    };
    is_next.then_some(rest)
}

/// The path to a list or an object, and the function that takes its items. The result: whether there is one.
struct Items<'a> {
    rest: &'a str,
    pointers: &'a [&'a str],
    each: &'a mut dyn FnMut(&[Option<Value>]),
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        // An object is a list only of its keys: no other part of it is asked for.
        if self.rest.is_empty() && self.pointers.first().is_some_and(|first| first.is_empty()) {
            while let Some(key) = map.next_key::<String>()? {
                map.next_value::<IgnoredAny>()?;
                let part = |pointer: &&str| pointer.is_empty().then(|| key.as_str().into());
                let found: Vec<_> = self.pointers.iter().map(part).collect();
                (self.each)(&found);
            }
            return Ok(true);
        }
        let mut has_list = None;
        while let Some(key) = map.next_key::<String>()? {
            let Some(rest) = after(self.rest, &key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if has_list.is_some() {
                return Err(A::Error::custom("a list twice"));
            }
            has_list = Some(map.next_value_seed(Items {
                rest,
                pointers: self.pointers,
                each: &mut *self.each,
            })?);
        }
        Ok(has_list.unwrap_or_default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        if !self.rest.is_empty() {
            return Err(A::Error::custom("a list in the way"));
        }
        loop {
            let mut found = vec![None; self.pointers.len()];
            let parts = Parts::new(self.pointers, &mut found);
            if items.next_element_seed(parts)?.is_none() {
                return Ok(true);
            }
            (self.each)(&found);
        }
    }
}

/// The rests of pointers, each with the place for its part.
struct Parts<'a>(Vec<(&'a str, &'a mut Option<Value>)>);

impl<'a> Parts<'a> {
    fn new(pointers: &[&'a str], found: &'a mut [Option<Value>]) -> Self {
        Self(pointers.iter().copied().zip(found).collect())
    }

    /// Those within this member. The last one of equal members counts.
    fn of(&mut self, key: &str) -> Parts<'_> {
        let parts = self.0.iter_mut().filter_map(|(pointer, place)| {
            let rest = after(pointer, key)?;
            **place = None;
            Some((rest, &mut **place))
        });
        Parts(parts.collect())
    }

    fn keep(self, value: &Value) {
        for (pointer, place) in self.0 {
            if pointer.is_empty() {
                *place = Some(value.clone());
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Parts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.is_empty() {
            IgnoredAny::deserialize(deserializer).map(drop)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Parts<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(self.of(&key))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        for at in 0_usize.. {
            let item = items.next_element_seed(self.of(&at.to_string()))?;
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.keep(&text.into());
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.keep(&number.into());
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.keep(&number.into());
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.keep(&number.into());
        Ok(())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        self.keep(&flag.into());
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}
