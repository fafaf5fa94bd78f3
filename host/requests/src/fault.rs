//! The reasons for which a request, or a part of it, is not written.

use super::body_node::place;

/// A value is missing, or the request is refused.
#[derive(Debug)]
pub struct Fault {
    absent: bool,
    place: String,
    why: String,
}

impl Fault {
    /// There is no value.
    pub fn absent(why: &str) -> Self {
        Self {
            absent: true,
            ..Self::refused(why)
        }
    }

    /// The request is refused.
    pub fn refused(why: impl Into<String>) -> Self {
        Self {
            absent: false,
            place: String::new(),
            why: why.into(),
        }
    }

    /// Whether there is no value.
    pub fn is_absent(&self) -> bool {
        self.absent
    }

    /// The fault where the value is needed.
    pub fn required(self) -> Self {
        Self {
            absent: false,
            ..self
        }
    }

    /// The fault of the value with this name.
    pub fn of(mut self, name: &str) -> Self {
        if !self.place.is_empty() {
            return self.at(&format!("{{{name}}}"));
        }
        self.why = format!("{{{name}}}: {}", self.why);
        self
    }

    /// The fault within a member of an object or a list.
    pub fn at(mut self, key: &str) -> Self {
        let is_joined = self.place.is_empty() || self.place.starts_with('[');
        let separator = if is_joined { "" } else { "." };
        self.place = format!("{key}{separator}{}", self.place);
        self
    }

    /// The place and the reason.
    pub fn words(self) -> String {
        if self.place.is_empty() {
            self.why
        } else {
            place(&self.place, &self.why)
        }
    }
}
