//! The whole text in both languages, compared with files of `tests/golden`. `CODEMODE_ACCEPT=1 cargo test -p
//! codemode-sdk --test golden` writes them; read the difference before you commit it.

mod support;

use std::collections::BTreeSet;
use std::fs;

use codemode_sdk::{Language, Sdk, SdkOptions};

use support::{folder, read, sdk, tools};

/// Schema files that show most between them.
const FILES: [&str; 7] = [
    "01-filesystem",
    "05-notion",
    "21-aws-dynamodb",
    "29-hostile-descriptions",
    "36-query-dsl-refs",
    "38-enum-and-const-edges",
    "40-pydantic-style",
];

/// Each golden file's name and what is to be in it.
fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for language in Language::ALL {
        for file in FILES {
            let sdk = sdk(&tools(&read(&format!("{file}.json"))));
            texts.push((format!("{file}.{language}.md"), sdk.text(language).to_owned()));
        }
        let names = tools(&read("30-hostile-names.json"));
        let catalogue = Sdk::build(&names, SdkOptions { token_budget: Some(1_300) });
        assert!(catalogue.is_catalogue(language), "the budget is below the whole text");
        texts.push((format!("catalogue.{language}.md"), catalogue.text(language).to_owned()));
        texts.push((format!("empty.{language}.md"), sdk(&[]).text(language).to_owned()));
    }
    texts
}

#[test]
fn texts_are_what_was_accepted() {
    let golden = folder().join("golden");
    let is_accepting = std::env::var_os("CODEMODE_ACCEPT").is_some();
    if is_accepting {
        let _ = fs::remove_dir_all(&golden);
        fs::create_dir_all(&golden).expect("a folder");
    }
    let texts = texts();
    for (name, text) in &texts {
        if is_accepting {
            fs::write(golden.join(name), text).expect("a file");
        }
        let accepted = fs::read_to_string(golden.join(name)).unwrap_or_default();
        assert!(*text == accepted, "{name} differs; CODEMODE_ACCEPT=1 writes what is so now:\n{text}");
    }
    let files =
        fs::read_dir(&golden).expect("a folder").map(|file| file.expect("a file").file_name().into_string());
    let files: BTreeSet<_> = files.map(|name| name.expect("a name")).collect();
    assert_eq!(files, texts.into_iter().map(|(name, _)| name).collect(), "files that nothing compares");
}
