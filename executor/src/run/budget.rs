//! What a run may spend: the executor's own budgets and how a request tightens them. Pure.

/// Heap that an engine needs to run anything, bytes.
pub const HEAP_BYTES_MIN: u64 = 8 << 20;
/// Longest wall budget, milliseconds: timers of 32 bits overflow beyond it, here and in callers.
pub const WALL_MS_MAX: u64 = (1 << 31) - 1;
/// Smallest output budget, bytes: `[]` and `""`.
pub const OUTPUT_BYTES_MIN: u64 = 4;

/// Every budget of a run, no one missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// CPU time, milliseconds.
    pub compute_ms: u64,
    /// Elapsed time, milliseconds.
    pub wall_ms: u64,
    /// Output ledger, bytes.
    pub output_bytes: u64,
    /// Engine heap, bytes.
    pub heap_bytes: u64,
    /// Binding calls in all.
    pub binding_calls: u64,
    /// Binding calls in flight.
    pub pending_calls: u64,
    /// Arguments of the calls in flight, bytes.
    pub pending_argument_bytes: u64,
    /// One log entry, bytes.
    pub log_entry_bytes: u64,
}

/// Budgets as a request names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestedBudgets {
    /// See [`Budgets::compute_ms`].
    pub compute_ms: Option<u64>,
    /// See [`Budgets::wall_ms`].
    pub wall_ms: Option<u64>,
    /// See [`Budgets::output_bytes`].
    pub output_bytes: Option<u64>,
    /// See [`Budgets::heap_bytes`].
    pub heap_bytes: Option<u64>,
    /// See [`Budgets::binding_calls`].
    pub binding_calls: Option<u64>,
    /// See [`Budgets::pending_calls`].
    pub pending_calls: Option<u64>,
    /// See [`Budgets::pending_argument_bytes`].
    pub pending_argument_bytes: Option<u64>,
    /// See [`Budgets::log_entry_bytes`].
    pub log_entry_bytes: Option<u64>,
}

/// A requested budget that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("budget `{name}` is {value}; it must be from {min} to {max}")]
pub struct BudgetFault {
    name: &'static str,
    value: u64,
    min: u64,
    max: u64,
}

impl Budgets {
    /// These budgets, tightened by what is requested.
    ///
    /// # Errors
    /// Every requested budget that is looser than its own, or below its minimum.
    pub fn tighten(&self, requested: &RequestedBudgets) -> Result<Self, Vec<BudgetFault>> {
        let mut faults = Vec::new();
        let mut pick = |name, own: u64, requested: Option<u64>, min: u64| match requested {
            None => own,
            Some(value) if (min.min(own)..=own).contains(&value) => value,
            Some(value) => {
                faults.push(BudgetFault { name, value, min: min.min(own), max: own });
                own
            }
        };
        let budgets = Self {
            compute_ms: pick("compute_ms", self.compute_ms, requested.compute_ms, 1),
            wall_ms: pick("wall_ms", self.wall_ms, requested.wall_ms, 1),
            output_bytes: pick("output_bytes", self.output_bytes, requested.output_bytes, OUTPUT_BYTES_MIN),
            heap_bytes: pick("heap_bytes", self.heap_bytes, requested.heap_bytes, HEAP_BYTES_MIN),
            binding_calls: pick("binding_calls", self.binding_calls, requested.binding_calls, 0),
            pending_calls: pick("pending_calls", self.pending_calls, requested.pending_calls, 1),
            pending_argument_bytes: pick(
                "pending_argument_bytes",
                self.pending_argument_bytes,
                requested.pending_argument_bytes,
                1,
            ),
            log_entry_bytes: pick("log_entry_bytes", self.log_entry_bytes, requested.log_entry_bytes, 1),
        };
        if faults.is_empty() { Ok(budgets) } else { Err(faults) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Budgets = Budgets {
        compute_ms: 60_000,
        wall_ms: 600_000,
        output_bytes: 64 << 20,
        heap_bytes: 512 << 20,
        binding_calls: 10_000,
        pending_calls: 256,
        pending_argument_bytes: 64 << 20,
        log_entry_bytes: 1 << 20,
    };

    #[test]
    fn nothing_requested_is_the_executors_own() {
        assert_eq!(OWN.tighten(&RequestedBudgets::default()), Ok(OWN));
    }

    #[test]
    fn both_ends_of_each_range() {
        type Set = fn(&mut RequestedBudgets, u64);
        let cases: [(Set, u64, u64); 8] = [
            (|b, v| b.compute_ms = Some(v), 1, OWN.compute_ms),
            (|b, v| b.wall_ms = Some(v), 1, OWN.wall_ms),
            (|b, v| b.output_bytes = Some(v), 4, OWN.output_bytes),
            (|b, v| b.heap_bytes = Some(v), 8 << 20, OWN.heap_bytes),
            (|b, v| b.binding_calls = Some(v), 0, OWN.binding_calls),
            (|b, v| b.pending_calls = Some(v), 1, OWN.pending_calls),
            (|b, v| b.pending_argument_bytes = Some(v), 1, OWN.pending_argument_bytes),
            (|b, v| b.log_entry_bytes = Some(v), 1, OWN.log_entry_bytes),
        ];
        for (set, min, max) in cases {
            let check = |value| {
                let mut requested = RequestedBudgets::default();
                set(&mut requested, value);
                OWN.tighten(&requested).is_ok()
            };
            assert!(check(min) && check(max) && !check(max + 1) && !check(u64::MAX));
            assert!(min == 0 || !check(min - 1));
        }
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let requested = RequestedBudgets { wall_ms: Some(0), output_bytes: Some(3), ..Default::default() };
        let faults = OWN.tighten(&requested).expect_err("two faults");
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "budget `wall_ms` is 0; it must be from 1 to 600000",
                "budget `output_bytes` is 3; it must be from 4 to 67108864"
            ]
        );
    }
}
