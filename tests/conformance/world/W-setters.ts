// Setters and getters on the prototypes of all objects and arrays see nothing of what crosses the boundary.
const log = console.log;
const names = ["0", "1", "2", "3", "length", "index", "first", "keys", "path", "text", "parent", "depth", "line", "column",
  "stack", "cause", "errors", "resolve", "reject", "table", "member", "site", "global", "functions", "errorClass", "made",
  "done", "next", "return", "groups", "indices", "lastIndex", "input", "handle", "callback", "args", "due", "ms", "serial",
  "cancelled", "repeats", "get", "set", "value", "writable", "enumerable", "configurable", "toJSON", "fatal", "style"];
const trap = {
  __proto__: null, configurable: true,
  get() { return undefined; },
  set() {},
};
const { defineProperty } = Reflect;
const echo = tools.echo, fail = tools.always_fails, date = new Date(0);
for (let i = 0; i < names.length; i++) {
  defineProperty(Object.prototype, names[i], trap);
  if (names[i] !== "length") defineProperty(Array.prototype, names[i], trap);
}
const value = await echo({ list: [1, { b: "x" }], none: null });
let typed = 0, lossy = 0;
try { await fail({}); } catch (e) { typed = e; }
try { await echo({ d: [date] }); } catch (e) { lossy = e; }
await new Promise((resolve) => setTimeout(resolve, 1));
log("still here");
for (let i = 0; i < names.length; i++) {
  delete Object.prototype[names[i]];
  if (names[i] !== "length") delete Array.prototype[names[i]];
}
return { value, name: typed.name, message: typed.message, tool: typed.toolName, lossy: lossy.message };
