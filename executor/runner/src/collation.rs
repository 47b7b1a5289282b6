//! Order of strings and names of locales, for the engine that has no `Intl` of its own.
//!
//! Owns the collators of this process: ICU4X's, with CLDR's data, which the engine's library links already. Whoever
//! asks decides what is an error; nothing here touches a value of the program but the two strings compared.

use std::collections::HashMap;

use deno_core::{OpDecl, OpState, op2, v8};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale::{Locale, LocaleCanonicalizer};

/// Most collators that one process makes: each locale and set of options is one.
const COLLATORS_MAX: usize = 1024;
/// Longest locale tag that is looked at, bytes.
const TAG_BYTES_MAX: usize = 256;
/// What [`op_codemode_collator`] answers when it has none.
const NO_COLLATOR: i32 = -1;

/// The ops of this file.
pub(crate) fn ops() -> Vec<OpDecl> {
    vec![op_codemode_collator(), op_codemode_collate(), op_codemode_locale()]
}

/// Collators by what was asked for; a handle is an index.
#[derive(Default)]
struct Collators {
    made: Vec<CollatorBorrowed<'static>>,
    handles: HashMap<(String, u32), i32>,
}

/// Handle of the collator for a canonical locale tag and packed options; [`NO_COLLATOR`] if there is none.
///
/// Options, from the lowest bit, 0 leaving each to the locale: 3 bits sensitivity (1 base, 2 accent, 3 case,
/// 4 variant), 2 bits numeric (1 yes, 2 no), 2 bits case first (1 upper, 2 lower, 3 neither), 2 bits ignore
/// punctuation (1 yes, 2 no).
#[op2(fast)]
#[smi]
fn op_codemode_collator(state: &mut OpState, #[string] tag: &str, #[smi] options: u32) -> i32 {
    if !state.has::<Collators>() {
        state.put(Collators::default());
    }
    let collators = state.borrow_mut::<Collators>();
    let key = (tag.to_owned(), options);
    if let Some(handle) = collators.handles.get(&key) {
        return *handle;
    }
    let Ok(handle) = i32::try_from(collators.made.len()) else { return NO_COLLATOR };
    if collators.made.len() >= COLLATORS_MAX {
        return NO_COLLATOR;
    }
    let Some(made) = make(tag, options) else { return NO_COLLATOR };
    collators.made.push(made);
    collators.handles.insert(key, handle);
    handle
}

fn make(tag: &str, packed: u32) -> Option<CollatorBorrowed<'static>> {
    let mut preferences = CollatorPreferences::from(&parse(tag)?);
    let mut options = CollatorOptions::default();
    match packed & 7 {
        1 => options.strength = Some(Strength::Primary),
        2 => options.strength = Some(Strength::Secondary),
        3 => {
            options.strength = Some(Strength::Primary);
            options.case_level = Some(CaseLevel::On);
        }
        4 => options.strength = Some(Strength::Tertiary),
        _ => {}
    }
    match (packed >> 3) & 3 {
        1 => preferences.numeric_ordering = Some(CollationNumericOrdering::True),
        2 => preferences.numeric_ordering = Some(CollationNumericOrdering::False),
        _ => {}
    }
    match (packed >> 5) & 3 {
        1 => preferences.case_first = Some(CollationCaseFirst::Upper),
        2 => preferences.case_first = Some(CollationCaseFirst::Lower),
        3 => preferences.case_first = Some(CollationCaseFirst::False),
        _ => {}
    }
    match (packed >> 7) & 3 {
        1 => options.alternate_handling = Some(AlternateHandling::Shifted),
        2 => options.alternate_handling = Some(AlternateHandling::NonIgnorable),
        _ => {}
    }
    CollatorBorrowed::try_new(preferences, options).ok()
}

/// -1, 0 or 1: how `left` stands to `right`, to the collator behind `handle`.
#[op2(fast)]
#[smi]
fn op_codemode_collate(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] handle: u32,
    left: v8::Local<'_, v8::String>,
    right: v8::Local<'_, v8::String>,
) -> i32 {
    let (left, right) = (units(scope, left), units(scope, right));
    let collator = state.try_borrow::<Collators>().and_then(|all| all.made.get(handle as usize));
    collator.map_or(0, |collator| collator.compare_utf16(&left, &right) as i32)
}

/// The string's UTF-16 code units, half surrogates and all.
fn units(scope: &v8::PinScope<'_, '_>, text: v8::Local<'_, v8::String>) -> Vec<u16> {
    let mut units = vec![0; text.length()];
    text.write_v2(scope, 0, &mut units, v8::WriteFlags::empty());
    units
}

/// The canonical form of a locale tag; empty if it is none.
#[op2]
#[string]
fn op_codemode_locale(#[string] tag: &str) -> String {
    parse(tag).map(|locale| locale.to_string()).unwrap_or_default()
}

fn parse(tag: &str) -> Option<Locale> {
    if tag.len() > TAG_BYTES_MAX {
        return None;
    }
    let mut locale = Locale::try_from_str(tag).ok()?;
    LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
    Some(locale)
}
