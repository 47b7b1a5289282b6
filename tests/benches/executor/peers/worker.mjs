// A program in a fresh worker thread per run, the way a harness without processes does it: the peer of a run.
// node worker.mjs '{"program": "return 1+1", "times": 10}' prints [{"total_ms": …, "run_ms": …}, …]:
// from `new Worker` to its end, and the program alone.
import { Worker } from "node:worker_threads";

const { program, times } = JSON.parse(process.argv[2]);

const source = `
const { parentPort, workerData } = require("node:worker_threads");
let last = 0;
const waiting = new Map();
parentPort.on("message", ({ id, value }) => { waiting.get(id)(value); waiting.delete(id); });
const tools = {
  echo: (args) => new Promise((resolve) => {
    waiting.set(++last, resolve);
    parentPort.postMessage({ id: last, args });
  }),
};
const AsyncFunction = (async () => {}).constructor;
const began = performance.now();
new AsyncFunction("tools", workerData)(tools).then((value) => {
  parentPort.postMessage({ value, ms: performance.now() - began });
  parentPort.close();
});
`;

function once() {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const worker = new Worker(source, { eval: true, workerData: program });
    let run_ms;
    worker.on("message", (message) => {
      if (message.id !== undefined) worker.postMessage({ id: message.id, value: message.args });
      else run_ms = message.ms;
    });
    worker.on("error", reject);
    worker.on("exit", () => resolve({ total_ms: performance.now() - began, run_ms }));
  });
}

const results = [];
for (let i = 0; i < times; i++) results.push(await once());
console.log(JSON.stringify(results));
