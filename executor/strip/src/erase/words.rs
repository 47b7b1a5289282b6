//! What is said of TypeScript that has run-time meaning: what is wrong, and what to write instead.

pub(super) const IMPORT: &str = "`import` does not work here: a program imports nothing, it uses the globals it was given; remove \
                      the import and write types out in the program";
pub(super) const EXPORT: &str = "`export` does not work here: a program exports nothing, its result is what it returns; remove \
                      `export` and end with `return …`";
pub(super) const ENUM: &str = "`enum` makes a value and cannot be erased; write `const Level = { Low: 0, High: 1 } as const;` and \
                    `type Level = (typeof Level)[keyof typeof Level];`";
pub(super) const NAMESPACE: &str = "`namespace` makes a value and cannot be erased; write plain functions, or an object with them: \
                         `const Util = { … };`";
pub(super) const PARAMETER_PROPERTY: &str = "a parameter property makes a field and cannot be erased; declare the field in the \
                                  class and assign it in the constructor: `x: T; constructor(x: T) { this.x = x; }`";
pub(super) const DECORATOR: &str = "a decorator has run-time meaning that the engine does not have; call the function yourself, \
                         e.g. `const run = log(function run() { … })`";
pub(super) const ACCESSOR: &str =
    "`accessor` fields are not supported; write a field, or a `get` and a `set` method";
pub(super) const JSX: &str = "JSX is not supported; build the text or the object with plain code";
pub(super) const USING: &str =
    "`using` is not supported; write `const x = …; try { … } finally { x[Symbol.dispose](); }`";
