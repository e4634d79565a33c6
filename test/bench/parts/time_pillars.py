"""Times Salt's external pillars side by side: one line of JSON in, one out.

Each compile is as Salt does it: a Pillar of its own, whose loader reads the module's file anew. Timed is what Salt
spends in ext_pillar, of the modules in turn, so that whatever else the machine does meets all of them alike. Each has
some compiles in a row: its first one comes after a pause, in which its servers did nothing, and is told apart.
"""

import json
import sys
import time

import salt.config
import salt.pillar


def compile_once(opts, entries, minion):
    pillar = salt.pillar.Pillar(dict(opts, ext_pillar=entries), {"id": minion}, minion, "base")
    started = time.perf_counter()
    data, errors = pillar.ext_pillar({}, errors=[])
    return (time.perf_counter() - started) * 1000, data, errors


def main():
    order = json.load(sys.stdin)
    opts = salt.config.master_config(order["config"])
    opts["pillar_roots"] = {"base": [order["dir"]]}
    opts["file_client"] = "local"
    opts["id"] = order["minion"]
    times = {name: [] for name in order["entries"]}
    first = {name: [] for name in order["entries"]}
    failed = {}
    for turn in range(order["rounds"] + 1):
        for name, entries in order["entries"].items():
            for place in range(order["row"]):
                took, data, errors = compile_once(opts, entries, order["minion"])
                if errors or len(data) < order["least"]:
                    failed[name] = str(errors or list(data))[:300]
                if turn > 0:
                    (first if place == 0 else times)[name].append(took)
    print(json.dumps({"times": times, "first": first, "failed": failed}))


main()
