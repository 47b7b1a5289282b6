// Every method of every intrinsic that can be replaced is, at once; what crosses the boundary stays exact.
const log = console.log, echo = tools.echo, fail = tools.always_fails, Failure = ToolCallError;
const { ownKeys, getPrototypeOf, defineProperty } = Reflect;
const date = new Date(0);
const throwing = function () { throw Intended.made("replaced"); };
class Intended extends Error { static made = new Intended("replaced"); }
const targets = [
  Object.prototype, Object, Array.prototype, Array, Function.prototype, Promise.prototype, Promise, RegExp.prototype,
  String.prototype, String, Number.prototype, Number, Boolean.prototype, Symbol.prototype, Map.prototype, Set.prototype,
  WeakMap.prototype, WeakSet.prototype, Error.prototype, Error, TypeError.prototype, JSON, Math, Reflect,
  Uint8Array.prototype, getPrototypeOf(Uint8Array.prototype), ArrayBuffer.prototype, Date, Date.prototype,
  BigInt.prototype, Iterator.prototype, getPrototypeOf([].values()), getPrototypeOf(new Map().values()), console,
  Failure, Failure.prototype, performance, crypto, globalThis,
];
let replaced = 0;
for (let t = 0; t < targets.length; t++) {
  const keys = ownKeys(targets[t]);
  for (let k = 0; k < keys.length; k++) {
    const key = keys[k];
    // The language itself looks these up: what a program then does to its own `await` and `return` is its own affair.
    if (key === "constructor" || key === "prototype" || key === "then" || key === "__proto__" || key === "globalThis") continue;
    if (key === "name" || key === "length" || key === "message") continue;
    try {
      defineProperty(targets[t], key, { __proto__: null, value: throwing, writable: true, configurable: true });
      replaced++;
    } catch {}
  }
}
const value = await echo({ list: [1, { b: "x" }], none: null });
let typed = 0, lossy = 0;
try { await fail({}); } catch (e) { typed = e; }
try { await echo({ d: [date] }); } catch (e) { lossy = e; }
log("still here");
return {
  value, many: replaced > 500, name: typed.name, message: typed.message, tool: typed.toolName,
  is: getPrototypeOf(typed) === Failure.prototype, lossy: lossy.message,
};
