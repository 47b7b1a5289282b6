//! Patterns of names: `*` stands for any run of characters, `?` for one, everything else for itself.

use serde::{Deserialize, Serialize};

/// A pattern. Case matters, and the whole text has to fit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// A pattern.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether the whole text fits. Takes time proportional to pattern times text at most.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let text: Vec<char> = text.chars().collect();
        let (mut p, mut t) = (0, 0);
        // Where the last star was, and how much of the text it stands for so far.
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some('*') => {
                    star = Some((p, t));
                    p += 1;
                }
                Some(wanted) if *wanted == '?' || *wanted == text[t] => {
                    p += 1;
                    t += 1;
                }
                _ => {
                    let Some((at, taken)) = star else { return false };
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
            }
        }
        pattern[p..].iter().all(|rest| *rest == '*')
    }
}
