//! The author subset, from the case files: behaviours 207 to 217.

use codemode_registry::json::Json;
use codemode_registry::schema::Schema;
use serde::Deserialize;

#[derive(Deserialize)]
struct Cases<T> {
    case: Vec<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaCase {
    behaviour: u32,
    schema: String,
    #[serde(default)]
    violations: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueCase {
    behaviour: u32,
    #[serde(default)]
    root: Option<String>,
    schema: String,
    value: String,
    #[serde(default)]
    violations: Vec<String>,
}

#[test]
fn schemas_that_authors_may_write() {
    let cases: Cases<SchemaCase> = toml::from_str(include_str!("../cases/schemas.toml")).expect("cases");
    for SchemaCase { behaviour, schema, violations } in cases.case {
        let found = Schema::declared(&schema).err().map(|fault| fault.violations).unwrap_or_default();
        assert_eq!(found.len(), violations.len(), "{behaviour}: {schema}: {found:#?}");
        for (found, wanted) in found.iter().zip(&violations) {
            assert!(found.contains(wanted.as_str()), "{behaviour}: {schema}: `{found}` lacks `{wanted}`");
        }
    }
}

#[test]
fn values_against_schemas() {
    let cases: Cases<ValueCase> = toml::from_str(include_str!("../cases/values.toml")).expect("cases");
    for ValueCase { behaviour, root, schema, value, violations } in cases.case {
        let schema = Schema::declared(&schema).expect("within the subset");
        let value = Json::parse(&value).expect("lossless");
        let found = match root.as_deref() {
            Some("arguments") => schema.violations_of_arguments(&value),
            _ => schema.violations_of_value(&value),
        };
        assert_eq!(found, violations, "{behaviour}");
    }
}
