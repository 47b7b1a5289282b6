//! SDKs of tool sets, made once for each set whoever sees it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use codemode_sdk::{ContentKey, Language, Sdk, SdkOptions, ToolSignature, UnknownLanguage};
use parking_lot::Mutex;

/// SDKs that are kept; when there are more, all but the latest are forgotten.
const SDKS_MAX: usize = 64;

/// What a deployment without a runtime speaks of.
const DEFAULT_LANGUAGE: Language = Language::TypeScript;

/// SDKs by the key of their content.
#[derive(Default)]
pub(crate) struct SdkCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_key: HashMap<ContentKey, Arc<Sdk>>,
    latest: Option<Arc<Sdk>>,
}

impl SdkCache {
    /// The SDK of these tools. What the one before it has in common with it is not worked out again.
    pub(crate) fn get(&self, tools: &[ToolSignature], options: SdkOptions) -> Arc<Sdk> {
        let key = Sdk::key_of(tools, options);
        let latest = {
            let kept = self.0.lock();
            if let Some(sdk) = kept.by_key.get(&key) {
                return Arc::clone(sdk);
            }
            kept.latest.clone()
        };
        let sdk = Arc::new(match latest {
            Some(latest) => latest.rebuilt(tools, options),
            None => Sdk::build(tools, options),
        });
        let mut kept = self.0.lock();
        if kept.by_key.len() >= SDKS_MAX {
            kept.by_key.clear();
        }
        kept.latest = Some(Arc::clone(&sdk));
        Arc::clone(kept.by_key.entry(key).or_insert(sdk))
    }
}

impl fmt::Debug for SdkCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SdkCache").field("kept", &self.0.lock().by_key.len()).finish()
    }
}

/// The language of programs: the runtime's, or the default one where there is no runtime.
pub(crate) fn language_of(runtime: Option<&str>) -> Result<Language, UnknownLanguage> {
    runtime.map_or(Ok(DEFAULT_LANGUAGE), str::parse)
}
