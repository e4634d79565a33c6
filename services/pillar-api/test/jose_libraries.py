"""
Verifies tokens with PyJWT and joserfc, knowing the issuer's URL and nothing else of Colonnade.

Reads {"issuer": ..., "base": ..., "tokens": [{"token": ..., "audience": ...}]}, writes for each token what both libraries say:
the subject, or the name of the error.
"""

import json
import sys
import urllib.request

import joserfc.jwk
import joserfc.jwt
import jwt

ALGORITHMS = ["EdDSA", "ES256"]


def get(url):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def with_pyjwt(keys, issuer, token, audience):
    kid = jwt.get_unverified_header(token)["kid"]
    key = next(key for key in jwt.PyJWKSet.from_dict(keys).keys if key.key_id == kid)
    required = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti"]
    options = {"require": required}
    return jwt.decode(token, key, algorithms=ALGORITHMS, audience=audience, issuer=issuer, options=options)["sub"]


def with_joserfc(keys, issuer, token, audience):
    found = joserfc.jwt.decode(token, joserfc.jwk.KeySet.import_key_set(keys), algorithms=ALGORITHMS)
    must = {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": audience}}
    needed = {name: {"essential": True} for name in ("sub", "exp", "nbf", "iat", "jti")}
    joserfc.jwt.JWTClaimsRegistry(**must, **needed).validate(found.claims)
    return found.claims["sub"]


def attempt(verify, *args):
    try:
        return verify(*args)
    except Exception as error:
        return "refused: " + type(error).__name__


asked = json.load(sys.stdin)
discovery = get(asked["base"] + "/.well-known/openid-configuration")
assert discovery["issuer"] == asked["issuer"]
path = discovery["jwks_uri"].removeprefix(asked["issuer"])
published = get(asked["base"] + path)
answers = [
    [attempt(verify, published, asked["issuer"], one["token"], one["audience"]) for verify in (with_pyjwt, with_joserfc)]
    for one in asked["tokens"]
]
json.dump(answers, sys.stdout)
