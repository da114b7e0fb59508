'use strict';

// Runs inside the process: compiles the C module and lets threads instrument themselves. A thread must begin its
// own instrumentation: Stalker.follow of another thread crashes.

let counting = null; // keeps the compiled code alive
let callbacks = [];
let compiled = [];

rpc.exports = {
  start(source, addresses) {
    const symbols = {};
    for (const [name, address] of Object.entries(addresses))
      symbols[name] = ptr(address);
    counting = new CModule(source, symbols);

    Stalker.trustThreshold = 0; // code is taken to stay as it is: checking it costs more than executing it
    const options = { transform: counting.transform, data: NULL };
    const instrument = new NativeCallback(() => Stalker.follow(Process.getCurrentThreadId(), options), 'void', []);
    const uninstrument = new NativeCallback(() => Stalker.unfollow(Process.getCurrentThreadId()), 'void', []);
    callbacks = [instrument, uninstrument];

    const size = name => new NativeFunction(counting[name], 'uint32', [])();
    const ownBytes = counting.own_code_ends.sub(counting.own_code_begins).toInt32();
    Stalker.exclude({ base: counting.own_code_begins, size: ownBytes }); // reading counters is not what is counted
    return {
      instrument: instrument.toString(),
      uninstrument: uninstrument.toString(),
      beginEpoch: counting.begin_epoch.toString(),
      edge: counting.edge.toString(),
      onFault: counting.on_fault.toString(),
      onSignal: counting.on_signal.toString(),
      lookForChanges: counting.look_for_changes.toString(),
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
