//! Measured durations and what is said of many of them. Pure.

use std::time::Duration;

/// Durations of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Adds one.
    pub(crate) fn push(&mut self, duration: Duration) {
        self.push_ms(duration.as_secs_f64() * 1e3);
    }

    /// Adds one, milliseconds.
    pub(crate) fn push_ms(&mut self, ms: f64) {
        self.0.push(ms);
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value that `part` of them do not exceed, milliseconds; nearest rank. 0 if there is none.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank: from 0 to the number of samples"
        )]
        let rank = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// The median, milliseconds.
    pub(crate) fn p50(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The 99th percentile, milliseconds.
    pub(crate) fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    /// The largest, milliseconds.
    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }
}

/// Slope of the straight line that fits the points best; 0 for fewer than two.
pub(crate) fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    if below > 0.0 { above / below } else { 0.0 }
}
