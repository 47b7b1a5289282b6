//! The configuration while the registry serves: read anew on request, taken whole or not at all.

use parking_lot::Mutex;

use crate::config::options::Options;
use crate::config::{Config, ConfigFaults};
use crate::registry::Registry;

/// Options that count from the next start only are all but these.
const RELOADED: [&str; 6] =
    ["mode", "tool_order", "sdk_token_budget", "max_parallel_sub_calls", "max_parallel_tool_calls", "policy"];

/// What a reload came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// How often the configuration was read with success.
    pub revision: u64,
    /// Options that changed and are in force.
    pub changed: Vec<String>,
    /// Options that changed and count from the next start only.
    pub needs_restart: Vec<String>,
}

#[derive(Debug)]
struct State {
    /// What is in force.
    options: Options,
    revision: u64,
}

/// A configuration that can be read anew.
#[derive(Debug)]
pub struct Live {
    /// What arguments and environment say, over every file.
    given: Options,
    registry: Registry,
    state: Mutex<State>,
}

impl Live {
    /// The configuration of a registry: what was given, and what came of it together with the file.
    #[must_use]
    pub fn new(given: Options, in_force: Options, registry: Registry) -> Self {
        Self { given, registry, state: Mutex::new(State { options: in_force, revision: 1 }) }
    }

    /// How often it was read with success.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Reads it anew and puts what can be changed in force, in one step. Blocks while it reads files.
    ///
    /// # Errors
    /// Every fault there is; nothing was changed.
    pub fn reload(&self) -> Result<Reloaded, ConfigFaults> {
        // Two at once take turns: the later one reads the later file.
        let mut state = self.state.lock();
        let options = self.given.clone().with_file().map_err(|fault| ConfigFaults(vec![fault]))?;
        let config = Config::validate(&options)?;
        let differing = differing(&state.options, &options);
        let (changed, needs_restart): (Vec<String>, Vec<String>) =
            differing.into_iter().partition(|name| RELOADED.contains(&name.as_str()));
        let settings = self.registry.reconfigure(config.settings);
        settings.map_err(|error| ConfigFaults(vec![error.to_string()]))?;
        let in_force = std::mem::take(&mut state.options);
        state.options = with_reloaded(in_force, options);
        state.revision += 1;
        tracing::info!(
            revision = state.revision,
            ?changed,
            ?needs_restart,
            "the configuration was read anew"
        );
        Ok(Reloaded { revision: state.revision, changed, needs_restart })
    }
}

fn with_reloaded(in_force: Options, read: Options) -> Options {
    Options {
        mode: read.mode,
        tool_order: read.tool_order,
        sdk_token_budget: read.sdk_token_budget,
        max_parallel_sub_calls: read.max_parallel_sub_calls,
        max_parallel_tool_calls: read.max_parallel_tool_calls,
        policy: read.policy,
        ..in_force
    }
}

/// Names of the options that differ, defaults counted as given.
fn differing(before: &Options, after: &Options) -> Vec<String> {
    let table = |options: &Options| {
        let whole = options.clone().over(Options::defaults());
        // Options came from a table like this one.
        toml::Table::try_from(whole).unwrap_or_default()
    };
    let (before, after) = (table(before), table(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}
