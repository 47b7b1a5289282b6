//! Numbers: the double and the text it was written as.

use std::fmt;

/// A finite double that is not negative zero, with the text it came as.
#[derive(Clone, Debug)]
pub struct Number {
    text: Box<str>,
    value: f64,
}

/// Up to here each integer is a double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl Number {
    /// Takes a text that has the grammar of a JSON number. `None` if no double says the same.
    pub(super) fn from_grammatical(text: &str) -> Option<Self> {
        let value: f64 = text.parse().ok()?;
        let negative_zero = value == 0.0 && text.starts_with('-');
        if !value.is_finite() || negative_zero || !is_exact(text, value) {
            return None;
        }
        Some(Self { text: text.into(), value })
    }

    /// The double.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.value
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it has no fraction; `1.0` has none.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.value.fract() == 0.0
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Whether an integer's text says the double exactly, or is the double's shortest digits as JavaScript prints them.
fn is_exact(text: &str, value: f64) -> bool {
    if value.abs() <= EXACT_MAX - 1.0 || text.contains(['.', 'e', 'E']) {
        return true;
    }
    if format!("{value:.0}") == text {
        return true;
    }
    // The shortest digits, and zeros in place of the rest.
    let shortest = format!("{value:e}");
    let Some((mantissa, exponent)) = shortest.split_once('e') else { return false };
    let Ok(exponent) = exponent.parse::<usize>() else { return false };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    // JavaScript writes an exponent from here on.
    const JS_POSITIONAL_EXPONENT_MAX: usize = 20;
    exponent <= JS_POSITIONAL_EXPONENT_MAX && format!("{sign}{digits:0<width$}", width = exponent + 1) == text
}
