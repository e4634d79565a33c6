"""Python's side of the comparison of canonical texts. Standard library only.

    json_dumps.py rewrite               each line of stdin, a JSON text, as json.dumps writes what json.loads read
    json_dumps.py generate SEED COUNT   COUNT pairs of lines: a random value in some notation, then in the canonical one
"""

import json
import math
import random
import struct
import sys

SPECIAL = "\0\b\t\n\v\f\r\x1b\x1f \"'\\/\x7f\x80\x85\xa0\u2028\u2029\ud7ff\ue000\ufeff\uffff\U00010000\U0001f600\U0010ffff"
BORDERS = [0, 1, -1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def any_notation(rng, value):
    """The same value in one of the many ways JSON allows, on one line."""
    separators = rng.choice([(",", ":"), (", ", ": "), ("\t,", " :\r")])
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=separators)


def random_integer(rng):
    kind = rng.randrange(3)
    if kind == 0:
        return rng.choice(BORDERS)
    bits = rng.randrange(1, 64)
    integer = rng.getrandbits(bits)
    return integer if kind == 1 else -integer - 1


def random_float(rng):
    if rng.random() < 0.5:
        return rng.randrange(-99999, 99999) * 10.0 ** rng.randrange(-320, 300)
    while True:
        (number,) = struct.unpack(">d", rng.getrandbits(64).to_bytes(8, "big"))
        if math.isfinite(number):
            return number


def random_character(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(SPECIAL)
    if kind == 1:
        return chr(rng.randrange(0x20, 0x7F))
    while True:
        code = rng.randrange(0x110000 if kind == 2 else 0x10000)
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def random_text(rng):
    return "".join(random_character(rng) for _ in range(rng.randrange(9)))


def random_value(rng, depth):
    kind = rng.randrange(7 if depth > 0 else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return random_integer(rng)
    if kind == 2:
        return random_float(rng)
    if kind <= 4:
        return random_text(rng)
    if kind == 5:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(6))]
    return {random_text(rng): random_value(rng, depth - 1) for _ in range(rng.randrange(6))}


def write_line(text):
    sys.stdout.buffer.write(text.encode("utf-8") + b"\n")


def main():
    if sys.argv[1] == "rewrite":
        for line in sys.stdin.buffer:
            write_line(canonical(json.loads(line)))
        return
    rng = random.Random(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        # A container more often than not: most of what can go wrong is in its keys.
        value = random_value(rng, 4) if rng.random() < 0.4 else {random_text(rng): random_value(rng, 3) for _ in range(4)}
        write_line(any_notation(rng, value))
        write_line(canonical(value))


main()
