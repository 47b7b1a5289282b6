const bad = [];
const seen = new Set();
const queue = [];
const push = (v, path) => { if ((typeof v === "object" && v !== null) || typeof v === "function") { if (!seen.has(v)) { seen.add(v); queue.push([v, path]); } } else if (typeof v === "string") text(v, path); };
// What would tell of the host: names of its parts, its files, its operations.
const TELLING = /ext:|codemode:|\/root|\/home|\.cargo|registry|\bop_\w+|__v8|__bootstrap|Deno\b|\bcore\.|primordials/;
// Keys by which the console knows how to show an object, and quickjs' way to its time zones: names without a hold.
const ALLOWED = new Set(["Deno.privateCustomInspect", "[Deno.privateCustomInspect]", "Deno.core.hostObject",
  "Deno.privateConsoleStylize", "function [Deno.privateCustomInspect]() { [native code] }", "__v8xTemporalTimeZone"]);
const text = (s, path) => { if (!path.startsWith("globalThis.RegExp.") && TELLING.test(s) && !ALLOWED.has(s)) bad.push(path + " says " + s.slice(0, 120)); };
const visit = (v, path) => {
  if (path.length > 300) return;
  let proto; try { proto = Object.getPrototypeOf(v); } catch { return; }
  push(proto, path + ".__proto__");
  if (typeof v === "function") { try { text(Function.prototype.toString.call(v), path + "()"); } catch {} }
  for (const k of Reflect.ownKeys(v)) {
    const p = path + (typeof k === "symbol" ? `[${String(k)}]` : `.${k}`);
    text(String(typeof k === "symbol" ? k.description : k), p + " KEY");
    let d; try { d = Object.getOwnPropertyDescriptor(v, k); } catch { continue; }
    if (!d) continue;
    if ("value" in d) push(d.value, p);
    if (d.get) { push(d.get, p + "<get>"); try { push(v[k], p); } catch (e) { push(e, p + "<threw>"); } try { push(Reflect.get(v, k, inst), p); } catch(e) { push(e, p+"<threw>"); } }
    if (d.set) push(d.set, p + "<set>");
  }
};
let inst = {};
const custom = [];
const roots = { globalThis, console, tools, ToolCallError };
const err = new Error("x"); try { null.x } catch (e) { roots.err = e; roots.stack = e.stack; }
try { await tools.fail({}) } catch (e) { roots.toolErr = e; }
roots.result = await tools.echo({ a: [1] });
roots.promise = tools.echo({});
const url = new URL("https://a.b/?c=d"); roots.url = url; roots.params = url.searchParams; roots.iter = url.searchParams.entries(); roots.iter2 = url.searchParams[Symbol.iterator]();
roots.ac = new AbortController(); roots.sig = AbortSignal.timeout(100000); roots.any = AbortSignal.any([roots.sig]); 
const et = new EventTarget(); et.addEventListener("x", function (e) { roots.event = e; roots.evthis = this; roots.args = [...arguments]; }); et.dispatchEvent(new CustomEvent("x", { detail: 1 }));
roots.ac.signal.onabort = function (e) { roots.abortEvent = e; }; roots.ac.abort();
roots.te = new TextEncoder(); roots.td = new TextDecoder(); roots.td.decode(new Uint8Array(3), { stream: true });
try { atob("*") } catch (e) { roots.dom = e; }
try { new URL("x") } catch (e) { roots.urlErr = e; }
try { structuredClone(() => 1) } catch (e) { roots.cloneErr = e; }
try { await import("x") } catch (e) { roots.importErr = e; }
try { new Intl.PluralRules("zz-invalid-locale-") } catch (e) { roots.intlErr = e; }
roots.intl = [new Intl.Collator(), new Intl.NumberFormat(), new Intl.DateTimeFormat()];
try { (function r() { r() })() } catch (e) { roots.overflow = e; }
try { eval("}") } catch (e) { roots.syn = e; }
try { JSON.parse("{") } catch (e) { roots.json = e; }
try { new (class extends URL {})("no") } catch (e) { roots.subErr = e; }
await new Promise(r => setTimeout(function () { roots.timerThis = this; roots.timerArgs = [...arguments]; r() }, 1));
queueMicrotask(function () { roots.microThis = this; }); await null;
roots.gen = (function* () {})(); roots.agen = (async function* () {})(); roots.af = async () => {};
roots.argsObj = (function () { return arguments })();
roots.mapIter = new Map().entries(); roots.arrIter = [].values(); roots.strIter = ""[Symbol.iterator](); roots.re = "a".matchAll(/a/g);
const cap = {}; Error.captureStackTrace && Error.captureStackTrace(cap); roots.cap = cap;
Error.prepareStackTrace = (e, s) => { roots.sites = s; return "P"; }; roots.ps = new Error("p").stack; delete Error.prepareStackTrace;
roots.legacy = RegExp["$_"] ?? ""; roots.lm = RegExp.input ?? "";
console.log({ [Symbol.for("Deno.privateCustomInspect")](...a) { custom.push(a); return "x" } }, { [Symbol.for("nodejs.util.inspect.custom")](...a) { custom.push(a); return "x" } }, { [Symbol.for("Deno.customInspect")](...a) { custom.push(a); return "x" } }); roots.custom = custom;
for (const [k, v] of Object.entries(roots)) push(v, k);
while (queue.length) { const [v, p] = queue.shift(); visit(v, p); }
const named = [...seen].filter((f) => typeof f === "function" && /^op_/.test(f.name)).length;
return { enough: seen.size > 900, callSites: "sites" in roots, named, bad: bad.slice(0, 20) };
