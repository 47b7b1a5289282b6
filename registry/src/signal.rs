//! Several abort signals as one: whichever fires first.

use std::sync::Arc;

use codemode_client::AbortSignal;
use futures::future::{FutureExt, select_all};

/// Fires when the first of its sources does. Never empty; clones are handles of one signal.
#[derive(Clone, Debug)]
pub struct Signal(Arc<[AbortSignal]>);

impl Signal {
    /// This signal and another.
    #[must_use]
    pub fn fused(&self, other: AbortSignal) -> Self {
        Self(self.0.iter().cloned().chain([other]).collect())
    }

    /// This signal and all sources of another.
    #[must_use]
    pub fn fused_with(&self, other: &Self) -> Self {
        if Arc::ptr_eq(&self.0, &other.0) {
            return self.clone();
        }
        Self(self.0.iter().chain(other.0.iter()).cloned().collect())
    }

    /// Whether it fired.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.reason().is_some()
    }

    /// The reason, once it fired.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.0.iter().find_map(AbortSignal::reason)
    }

    /// Waits until it fires and gives the reason. Cancel-safe.
    pub async fn aborted(&self) -> &str {
        select_all(self.0.iter().map(|source| source.aborted().boxed())).await.0
    }
}

impl From<AbortSignal> for Signal {
    fn from(signal: AbortSignal) -> Self {
        Self(Arc::new([signal]))
    }
}
