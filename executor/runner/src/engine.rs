//! The engine, booted once: platform, isolate, the program's world.
//!
//! Owns the `JsRuntime` and the trusted functions of the boot script. Everything a program could use to reach the
//! host is gone before [`Engine::boot`] returns. Never drives deno_core's event loop: the run's loop does.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use deno_core::{Extension, ExtensionFileSource, JsRuntime, RuntimeOptions, v8};
use deno_web::{BlobStore, InMemoryBroadcastChannel};

use crate::heap::HEAP_INITIAL_BYTES;
use crate::ops;

/// Stands in place of every loaded module: the message of every dynamic import, whatever its specifier.
const IMPORT_REFUSAL: &str =
    "programs import nothing: there are no modules here; use the language, the web globals and the tools";

/// Where the boot script's answer stands in a snapshot, until it is restored.
macro_rules! snapshot_global {
    () => {
        "__codemode"
    };
}

/// Boots the program's world in a runtime that is about to become a snapshot.
#[cfg(feature = "v8")]
pub(crate) fn boot_for_snapshot(runtime: &mut JsRuntime) -> Result<(), BootError> {
    let script = format!("globalThis.{} = {BOOT_SCRIPT}", snapshot_global!());
    runtime
        .execute_script("codemode:boot", script)
        .map(drop)
        .map_err(|error| BootError::Script(error.to_string()))
}

/// The boot script's parts, in their order. One function scope holds them all.
const BOOT_SCRIPT: &str = concat!(
    "(() => { \"use strict\";\n",
    include_str!("../js/00_primordials.js"),
    include_str!("../js/01_json.js"),
    include_str!("../js/02_errors.js"),
    include_str!("../js/03_console.js"),
    include_str!("../js/04_timers.js"),
    include_str!("../js/05_globals.js"),
    include_str!("../js/06_intl.js"),
    include_str!("../js/07_program.js"),
    "})()\n",
);

/// Takes the boot script's answer out of a restored snapshot.
const RESTORE_SCRIPT: &str = concat!(
    "(() => { const answer = globalThis.",
    snapshot_global!(),
    ";",
    " delete globalThis.",
    snapshot_global!(),
    "; return answer; })()",
);

/// `(specifier, text)` of each script of the web platform that the boot script loads; made by `build.rs`.
const WEB_SCRIPTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/web_scripts.rs"));

/// Why the engine did not boot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BootError {
    /// The boot script threw.
    #[error("boot script failed: {0}")]
    Script(String),
    /// The boot script did not answer the function of that name.
    #[error("boot script has no function `{0}`")]
    Function(&'static str),
}

/// The boot script's functions that the run's loop calls.
#[derive(Clone, Debug)]
pub(crate) struct Trusted {
    /// Takes the run's parameters, answers the program's arguments.
    pub(crate) prepare: v8::Global<v8::Function>,
    /// Calls the program.
    pub(crate) start: v8::Global<v8::Function>,
    /// A call's value arrived.
    pub(crate) deliver: v8::Global<v8::Function>,
    /// A call's failure arrived.
    pub(crate) deliver_error: v8::Global<v8::Function>,
    /// Runs a due timer, answers what to wait for.
    pub(crate) tick: v8::Global<v8::Function>,
    /// Settles with something thrown.
    pub(crate) fail_with: v8::Global<v8::Function>,
}

/// Functions that engine callbacks call; a callback has no other way to find them.
#[derive(Debug)]
struct Hooks {
    prepare_stack: v8::Global<v8::Function>,
    promise_rejected: v8::Global<v8::Function>,
    promise_handled: v8::Global<v8::Function>,
}

thread_local! {
    static HOOKS: RefCell<Option<Hooks>> = const { RefCell::new(None) };
}

/// A booted engine.
pub(crate) struct Engine {
    /// The runtime; its op state receives the run's channel.
    pub(crate) runtime: JsRuntime,
    /// The boot script's functions.
    pub(crate) trusted: Trusted,
    /// The published list of globals.
    pub(crate) globals: Vec<String>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("globals", &self.globals.len()).finish_non_exhaustive()
    }
}

/// Flags of the engine. `--single-threaded` leaves the process with one thread, so that it can fork.
pub(crate) fn set_flags(jitless: bool) {
    let mut flags = vec![
        "codemode-runner".to_owned(),
        "--single-threaded".to_owned(),
        // What the rehearsal compiled is for the children; a collection must not drop it.
        "--no-flush-bytecode".to_owned(),
        format!("--max-old-space-size={}", HEAP_INITIAL_BYTES >> 20),
    ];
    if cfg!(feature = "v8") {
        flags.push("--stack-size=2048".to_owned());
        if jitless {
            flags.push("--jitless".to_owned());
        }
    }
    deno_core::v8_set_flags(flags);
}

/// Version of the engine, as it reports it.
pub(crate) fn version() -> String {
    if cfg!(feature = "v8") {
        v8::V8::get_version().to_owned()
    } else {
        concat!("quickjs-ng of v8x ", env!("CODEMODE_FACADE_VERSION")).to_owned()
    }
}

impl Engine {
    /// Boots the engine and the program's world; from `snapshot`, which [`snapshot::create`](crate::snapshot::create)
    /// made, in a fraction of the time.
    pub(crate) fn boot(jitless: bool, snapshot: Option<&'static [u8]>) -> Result<Self, BootError> {
        set_flags(jitless);
        JsRuntime::init_platform(Some(platform()));
        let mut runtime = JsRuntime::new(RuntimeOptions {
            extensions: extensions(snapshot.is_none()),
            startup_snapshot: snapshot,
            ..Default::default()
        });
        let script = if snapshot.is_some() { RESTORE_SCRIPT } else { BOOT_SCRIPT };
        let answer = runtime
            .execute_script("codemode:boot", script)
            .map_err(|error| BootError::Script(error.to_string()))?;
        let (trusted, hooks, globals) = take_functions(&mut runtime, &answer)?;
        HOOKS.with_borrow_mut(|slot| *slot = Some(hooks));
        let isolate = runtime.v8_isolate();
        isolate.set_prepare_stack_trace_callback(prepare_stack);
        isolate.set_promise_reject_callback(promise_reject);
        isolate.set_host_import_module_dynamically_callback(refuse_import);
        isolate.set_host_import_module_with_phase_dynamically_callback(refuse_import_with_phase);
        Ok(Self { runtime, trusted, globals })
    }
}

/// The engine's platform without threads of its own.
pub(crate) fn platform() -> v8::SharedRef<v8::Platform> {
    v8::new_single_threaded_default_platform(false).make_shared()
}

/// deno's web platform and our ops. A snapshot holds the scripts already.
pub(crate) fn extensions(with_scripts: bool) -> Vec<Extension> {
    let blobs = Arc::new(BlobStore::default());
    let web = deno_web::deno_web::init(blobs, None, false, InMemoryBroadcastChannel::default());
    vec![
        embed_scripts(deno_webidl::deno_webidl::init(), "ext:deno_webidl/", with_scripts),
        embed_scripts(web, "ext:deno_web/", with_scripts),
        ops::extension(),
    ]
}

/// The extension with the scripts embedded in this binary in place of the build machine's files, and no others.
fn embed_scripts(mut extension: Extension, prefix: &str, with_scripts: bool) -> Extension {
    extension.js_files = Cow::Borrowed(&[]);
    extension.esm_files = Cow::Borrowed(&[]);
    extension.lazy_loaded_esm_files = Cow::Borrowed(&[]);
    extension.lazy_loaded_js_files = WEB_SCRIPTS
        .iter()
        .filter(|(specifier, _)| with_scripts && specifier.starts_with(prefix))
        .map(|(specifier, text)| ExtensionFileSource::new_computed(specifier, Arc::from(*text)))
        .collect();
    extension
}

fn take_functions(
    runtime: &mut JsRuntime,
    answer: &v8::Global<v8::Value>,
) -> Result<(Trusted, Hooks, Vec<String>), BootError> {
    deno_core::scope!(scope, runtime);
    let answer = v8::Local::new(scope, answer);
    let object: v8::Local<'_, v8::Object> = answer.try_cast().map_err(|_| BootError::Function("boot"))?;
    let function = |name: &'static str| -> Result<v8::Global<v8::Function>, BootError> {
        let key = v8::String::new(scope, name).ok_or(BootError::Function(name))?;
        let value = object.get(scope, key.into()).ok_or(BootError::Function(name))?;
        let value: v8::Local<'_, v8::Function> = value.try_cast().map_err(|_| BootError::Function(name))?;
        Ok(v8::Global::new(scope, value))
    };
    let trusted = Trusted {
        prepare: function("prepare")?,
        start: function("start")?,
        deliver: function("deliver")?,
        deliver_error: function("deliverError")?,
        tick: function("tick")?,
        fail_with: function("failWith")?,
    };
    let hooks = Hooks {
        prepare_stack: function("prepareStack")?,
        promise_rejected: function("promiseRejected")?,
        promise_handled: function("promiseHandled")?,
    };
    let install_globals = function("installGlobals")?;
    let global_names = function("globalNames")?;
    let undefined = v8::undefined(scope).into();
    let install = v8::Local::new(scope, &install_globals);
    install.call(scope, undefined, &[]).ok_or(BootError::Function("installGlobals"))?;
    let names = v8::Local::new(scope, &global_names);
    let list = names.call(scope, undefined, &[]).ok_or(BootError::Function("globalNames"))?;
    let list: v8::Local<'_, v8::Array> = list.try_cast().map_err(|_| BootError::Function("globalNames"))?;
    let globals = (0..list.length())
        .filter_map(|index| list.get_index(scope, index))
        .map(|name| name.to_rust_string_lossy(scope))
        .collect();
    Ok((trusted, hooks, globals))
}

/// Stack texts: the boot script's formatter, whatever the program assigned to `Error.prepareStackTrace`.
fn prepare_stack<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Value> {
    let hook = HOOKS.with_borrow(|hooks| hooks.as_ref().map(|hooks| hooks.prepare_stack.clone()));
    let undefined = v8::undefined(scope).into();
    let Some(hook) = hook else { return undefined };
    let hook = v8::Local::new(scope, hook);
    hook.call(scope, undefined, &[error, sites.into()]).unwrap_or(undefined)
}

/// Tells the boot script of rejections without a handler, and of handlers that came late.
extern "C" fn promise_reject(message: v8::PromiseRejectMessage<'_>) {
    {
        // SAFETY: the engine calls this with its isolate entered, and `message` lives for the length of the call.
        v8::callback_scope!(unsafe scope, &message);
        let rejected = message.get_event() == v8::PromiseRejectEvent::PromiseRejectWithNoHandler;
        let handled = message.get_event() == v8::PromiseRejectEvent::PromiseHandlerAddedAfterReject;
        if !rejected && !handled {
            return;
        }
        let hook = HOOKS.with_borrow(|hooks| {
            hooks.as_ref().map(|hooks| {
                if rejected { hooks.promise_rejected.clone() } else { hooks.promise_handled.clone() }
            })
        });
        let Some(hook) = hook else { return };
        let hook = v8::Local::new(scope, hook);
        let undefined = v8::undefined(scope).into();
        let promise = message.get_promise().into();
        let value = message.get_value().unwrap_or(undefined);
        hook.call(scope, undefined, &[promise, value]);
    }
}

/// Every dynamic import is refused with one message, so that it tells nothing of what exists.
fn refuse_import<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    _host_options: v8::Local<'s, v8::Data>,
    _resource_name: v8::Local<'s, v8::Value>,
    _specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    let resolver = v8::PromiseResolver::new(scope)?;
    let message = v8::String::new(scope, IMPORT_REFUSAL)?;
    let error = v8::Exception::type_error(scope, message);
    resolver.reject(scope, error);
    Some(resolver.get_promise(scope))
}

/// As [`refuse_import`], for the callback that engines with import phases call.
fn refuse_import_with_phase<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    host_options: v8::Local<'s, v8::Data>,
    resource_name: v8::Local<'s, v8::Value>,
    specifier: v8::Local<'s, v8::String>,
    _phase: v8::ModuleImportPhase,
    attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    refuse_import(scope, host_options, resource_name, specifier, attributes)
}

#[cfg(test)]
mod tests {
    /// quickjs makes a call of `String.prototype.concat` of a template literal, and that is the program's to replace.
    #[test]
    fn the_boot_script_has_no_template_literals() {
        let mut in_comment = false;
        for (index, line) in super::BOOT_SCRIPT.lines().enumerate() {
            let text = line.trim_start();
            in_comment |= text.starts_with("/*");
            let is_comment = in_comment || text.starts_with("//");
            in_comment &= !text.ends_with("*/");
            let code = text.split_once(" // ").map_or(text, |(code, _)| code);
            assert!(is_comment || !code.contains('`'), "line {}: {line}", index + 1);
        }
    }
}
