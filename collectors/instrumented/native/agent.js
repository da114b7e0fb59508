'use strict';

// Runs inside the process: compiles the C module and lets threads follow themselves. A thread must be followed by
// itself: following another one from here crashes.

let counting = null; // keeps the compiled code alive
let callbacks = [];
let compiled = [];

rpc.exports = {
  start(source, addresses) {
    const symbols = {};
    for (const [name, address] of Object.entries(addresses))
      symbols[name] = ptr(address);
    counting = new CModule(source, symbols);

    Stalker.trustThreshold = 0; // code is taken to stay as it is: checking it costs more than following it
    const options = { transform: counting.transform, data: NULL };
    const follow = new NativeCallback(() => Stalker.follow(Process.getCurrentThreadId(), options), 'void', []);
    const unfollow = new NativeCallback(() => Stalker.unfollow(Process.getCurrentThreadId()), 'void', []);
    callbacks = [follow, unfollow];

    const size = name => new NativeFunction(counting[name], 'uint32', [])();
    const ownBytes = counting.own_code_ends.sub(counting.own_code_begins).toInt32();
    Stalker.exclude({ base: counting.own_code_begins, size: ownBytes }); // reading counters is not what is counted
    return {
      follow: follow.toString(),
      unfollow: unfollow.toString(),
      beginEpoch: counting.begin_epoch.toString(),
      edge: counting.edge.toString(),
      ownCode: [counting.own_code_begins.toString(), ownBytes],
      sizes: [size('control_bytes'), size('context_bytes'), size('block_bytes'), size('cache_model_bytes')],
    };
  },

  compile(source, name) { // a C source that needs no symbol
    const module = new CModule(source, {});
    compiled.push(module);
    return module[name].toString();
  },
};
