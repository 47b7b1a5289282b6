// The program's timers: a binary heap by due time and order of creation, run by the runner's own loop.

const heap = newList();
const armed = new SafeMap();
let timerSerial = 0;

function earlier(a, b) {
  return a.due < b.due || (a.due === b.due && a.serial < b.serial);
}

function heapPush(timer) {
  let i = heap.length;
  heap[i] = timer;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (!earlier(timer, heap[parent])) break;
    heap[i] = heap[parent];
    i = parent;
  }
  heap[i] = timer;
}

function heapPop() {
  const top = heap[0];
  const last = ArrayPrototypePop(heap);
  if (heap.length > 0) {
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && earlier(heap[child + 1], heap[child])) child++;
      if (!earlier(heap[child], last)) break;
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = last;
  }
  return top;
}

/** Cancelled timers stay in the heap until they come up. */
function dropCancelled() {
  while (heap.length > 0 && heap[0].cancelled) {
    heapPop();
  }
}

function arm(callback, delay, args, repeats, who) {
  if (typeof callback !== "function") {
    throw new TypeError(who + ": the callback must be a function, not " + (typeof callback));
  }
  let ms = Number(delay);
  if (!(ms > 0)) ms = 0;
  if (ms > 2_147_483_647) ms = 2_147_483_647;
  const timer = {
    __proto__: null,
    serial: ++timerSerial,
    due: op_codemode_now() + ms,
    ms,
    callback,
    args,
    repeats,
    cancelled: false,
  };
  MapPrototypeSet(armed, timer.serial, timer);
  heapPush(timer);
  return timer.serial;
}

function disarm(id) {
  const timer = MapPrototypeGet(armed, id);
  if (timer !== undefined) {
    timer.cancelled = true;
    MapPrototypeDelete(armed, id);
  }
}

const setTimeout = opaque("setTimeout", 2, (callback, delay, ...args) => arm(callback, delay, args, false, "setTimeout"));
const setInterval = opaque("setInterval", 2, (callback, delay, ...args) => arm(callback, delay, args, true, "setInterval"));
const clearTimeout = opaque("clearTimeout", 1, disarm);
const clearInterval = opaque("clearInterval", 1, disarm);

/** Runs the first timer that is due; answers whether there was one. */
function runDueTimer() {
  dropCancelled();
  if (heap.length === 0 || heap[0].due > op_codemode_now()) {
    return false;
  }
  const timer = heapPop();
  if (timer.repeats) {
    timer.due = op_codemode_now() + (timer.ms < 1 ? 1 : timer.ms);
    heapPush(timer);
  } else {
    MapPrototypeDelete(armed, timer.serial);
  }
  try {
    ReflectApply(timer.callback, undefined, timer.args);
  } catch (error) {
    uncaught(error, "in a timer's callback");
  }
  return true;
}

/** Milliseconds until the next timer is due; negative if none is armed. */
function nextTimerDelay() {
  dropCancelled();
  if (heap.length === 0) {
    return -1;
  }
  const delay = heap[0].due - op_codemode_now();
  return delay > 0 ? delay : 0;
}
