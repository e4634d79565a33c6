"""The $enc format written down once more, with Python's `cryptography`: what another implementation of it does.

    enc.py seal KEK_B64 KID    each line of stdin, {"context": {...}, "value": any}, to {"$enc": {...}}
    enc.py open KEK_B64 KID    each line of stdin, {"context": {...}, "enc": {"$enc": {...}}}, to the canonical value,
                               or to !NAME of the exception
"""

import base64
import json
import os
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def aads(context, kid):
    data = "{tgt_type}:{tgt_id}:{pillarenv}:{name}".format(**context)
    return data.encode("utf-8"), f"pillars-dek:{kid}:{data}".encode("utf-8")


def to_b64(data):
    return base64.b64encode(data).decode("ascii")


def from_b64(text):
    return base64.b64decode(text, validate=True)


def seal(kek, kid, context, value):
    data_aad, wrap_aad = aads(context, kid)
    dek = os.urandom(32)
    nonce = os.urandom(12)
    wrap_nonce = os.urandom(12)
    return {
        "$enc": {
            "v": 1,
            "alg": "A256GCM",
            "kid": kid,
            "nonce_b64": to_b64(nonce),
            "ct_b64": to_b64(AESGCM(dek).encrypt(nonce, canonical(value).encode("utf-8"), data_aad)),
            "dek_wrap_alg": "A256GCM",
            "dek_wrap_nonce_b64": to_b64(wrap_nonce),
            "dek_wrapped_b64": to_b64(AESGCM(kek).encrypt(wrap_nonce, dek, wrap_aad)),
        }
    }


def open_sealed(kek, kid, context, sealed):
    enc = sealed["$enc"]
    assert enc["v"] == 1 and enc["kid"] == kid
    data_aad, wrap_aad = aads(context, kid)
    dek = AESGCM(kek).decrypt(from_b64(enc["dek_wrap_nonce_b64"]), from_b64(enc["dek_wrapped_b64"]), wrap_aad)
    plaintext = AESGCM(dek).decrypt(from_b64(enc["nonce_b64"]), from_b64(enc["ct_b64"]), data_aad)
    value = json.loads(plaintext)
    # What was sealed are the canonical bytes themselves, not just the same value.
    assert plaintext == canonical(value).encode("utf-8")
    return canonical(value)


def main():
    mode, kek, kid = sys.argv[1], from_b64(sys.argv[2]), sys.argv[3]
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if mode == "seal":
            text = json.dumps(seal(kek, kid, message["context"], message["value"]))
        else:
            try:
                text = open_sealed(kek, kid, message["context"], message["enc"])
            except Exception as error:
                text = "!" + type(error).__name__
        sys.stdout.buffer.write(text.encode("utf-8") + b"\n")


main()
