//! What a deployment decides: mode, order, policy, limits. One immutable value, replaced as a whole.

use crate::policy::Policy;
use crate::present::{Mode, ToolOrder, ToolOrderFault};

/// Sub-calls and native calls that may overlap, unless the deployment says otherwise.
pub const MAX_PARALLEL_DEFAULT: usize = 10;

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsFault {
    /// A pool that nothing fits into.
    #[error("{name} must be a positive integer")]
    NotPositive {
        /// The setting.
        name: &'static str,
    },
    /// An order that contradicts itself.
    #[error(transparent)]
    ToolOrder(#[from] ToolOrderFault),
}

/// A deployment's settings. [`Default`] is native mode without order, policy or surprises.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How tools are presented where no scope says otherwise.
    pub mode: Mode,
    /// In which order tools are listed; lexicographic without one.
    pub tool_order: Option<ToolOrder>,
    /// Tokens that the SDK's text may take; beyond, programs are given a catalogue to search. No bound if absent.
    pub sdk_token_budget: Option<usize>,
    /// What is allowed, denied and asked, without code.
    pub policy: Policy,
    /// Sub-calls of one run whose bodies may overlap.
    pub max_parallel_sub_calls: usize,
    /// Native calls of one step whose bodies may overlap.
    pub max_parallel_tool_calls: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Native,
            tool_order: None,
            sdk_token_budget: None,
            policy: Policy::default(),
            max_parallel_sub_calls: MAX_PARALLEL_DEFAULT,
            max_parallel_tool_calls: MAX_PARALLEL_DEFAULT,
        }
    }
}

impl Settings {
    /// Checks what a type cannot.
    ///
    /// # Errors
    /// [`SettingsFault`], the first there is.
    pub fn check(&self) -> Result<(), SettingsFault> {
        let positive =
            |name, value: usize| if value == 0 { Err(SettingsFault::NotPositive { name }) } else { Ok(()) };
        positive("maxParallelSubCalls", self.max_parallel_sub_calls)?;
        positive("maxParallelToolCalls", self.max_parallel_tool_calls)
    }
}
