"""Salt's own YAML loader, asked from outside: each line in is a JSON text, a YAML document; each line out what Salt makes of it.

`value <json>` where JSON can hold it, else `unfit <why>`; `error` where Salt itself fails.
"""

import json
import math
import sys
import warnings

warnings.simplefilter("ignore")

import salt.utils.yaml  # noqa: E402


class Unfit(Exception):
    pass


def check(value):
    if value is None or isinstance(value, (bool, str)):
        if isinstance(value, str):
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise Unfit("surrogate")
        return
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Unfit("range")
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unfit("range")
        return
    if isinstance(value, list):
        for item in value:
            check(item)
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise Unfit("key")
            check(key)
            check(item)
        return
    raise Unfit("type")


def answer(document):
    try:
        value = salt.utils.yaml.safe_load(document)
    except Exception:  # Salt's own mistakes, such as an IndexError for `0_`, are its errors too.
        return "error"
    try:
        check(value)
    except Unfit as reason:
        return f"unfit {reason}"
    except RecursionError:
        return "unfit cycle"
    return "value " + json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


for line in sys.stdin.buffer:
    sys.stdout.buffer.write(answer(json.loads(line)).encode("utf-8") + b"\n")
