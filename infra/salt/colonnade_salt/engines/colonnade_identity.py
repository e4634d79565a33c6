"""
Engine: keeps this master's identity, a token that lives for a quarter of an hour.

It enrols once, with a one-time token of an admin's, writes what it gets into a file that is nobody else's (0600), and
renews it long before it expires. The external pillar reads that file. The standard library only, and no token in any
log: what pillar-api says of one is its stable code.
"""

import fcntl
import json
import logging
import os
import stat
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime

log = logging.getLogger(__name__)

TIMEOUT_S = 10
MAX_ANSWER_BYTES = 64 * 1024
# Between two looks, and after a failure: a token lives for 900 s, so there are many tries before it is too late.
TURN_S = 30
# Renewed when less than this part of its life is left.
RENEW_BELOW = 0.6
OPTIONS = ("identity_file", "enrol_token_file", "api_url", "api_ca", "api_insecure_http")


class IdentityError(Exception):
    """Why there is no identity now; the text holds no token."""


def start():
    """Run for ever, as Salt starts engines; the options are those of the external pillar's entry."""
    while True:
        try:
            keep(read_options(__opts__))
        except IdentityError as error:
            log.error("Colonnade: the identity could not be kept: %s", error)
        except Exception as error:  # Whatever it is, its text may quote what was sent.
            log.error("Colonnade: the identity could not be kept: unexpected %s", type(error).__name__)
        time.sleep(TURN_S)


def read_options(opts):
    """The options of the master's ``colonnade`` option under those of its ext_pillar entry."""
    options = dict(opts.get("colonnade") or {})
    for entry in opts.get("ext_pillar") or []:
        if isinstance(entry, dict) and isinstance(entry.get("colonnade"), dict):
            options.update(entry["colonnade"])
    for name in ("identity_file", "api_url"):
        if not isinstance(options.get(name), str) or not options[name]:
            raise IdentityError(f"option {name} is missing")
    return {name: options[name] for name in OPTIONS if name in options}


def keep(options, now=time.time):
    """One look: enrol when there is no identity, renew it when it is old enough. Returns what was done."""
    path = options["identity_file"]
    with _locked(path) as mine:
        if not mine:
            return "another"
        identity = read_identity(path)
        if identity is None or identity["expires_at"] <= now():
            return _enrol(options, identity)
        life = identity["expires_at"] - identity["issued_at"]
        if identity["expires_at"] - now() > life * RENEW_BELOW:
            return "fresh"
        _write(path, _ask(options, "/identity/renew", identity["token"]), now())
        return "renewed"


def _enrol(options, expired):
    token_file = options.get("enrol_token_file")
    if not token_file or not os.path.exists(token_file):
        what = "has expired" if expired else "is not there"
        raise IdentityError(f"the identity {what}, and there is no one-time token: an admin makes one for this master")
    answer = _ask(options, "/identity/enrol", _read_private(token_file, "enrol_token_file"))
    _write(options["identity_file"], answer, time.time())
    # It was used: left there, it would only be taken for one that is good.
    os.unlink(token_file)
    return "enrolled"


# --- Files -------------------------------------------------------------------------------------------------------


def read_identity(path):
    """The identity in the file, or None where there is none; a file that others may read is refused."""
    if not os.path.exists(path):
        return None
    try:
        found = json.loads(_read_private(path, "identity_file"))
        return {"token": str(found["token"]), **{n: float(found[n]) for n in ("issued_at", "expires_at")}}
    except (ValueError, KeyError, TypeError):
        raise IdentityError("the file of option identity_file is not one of this engine") from None


def _read_private(path, option):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, encoding="ascii") as file:
            mode = os.fstat(fd).st_mode
            text = file.read(16_384).strip()
    except (OSError, UnicodeDecodeError):
        raise IdentityError(f"the file of option {option} cannot be read") from None
    if stat.S_IMODE(mode) & 0o077:
        raise IdentityError(f"the file of option {option} is open to others; chmod it to 0600")
    return text


def _write(path, answer, now):
    try:
        expires_at = datetime.fromisoformat(answer["expires_at"].replace("Z", "+00:00")).timestamp()
        content = {"token": str(answer["token"]), "issued_at": now, "expires_at": expires_at}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise IdentityError("pillar-api's answer is not an identity") from None
    folder = os.path.dirname(os.path.abspath(path))
    # Made with 0600, and given its name when it is whole: nobody reads half of it, or more than he may.
    fd, temp = tempfile.mkstemp(dir=folder, prefix=".identity-")
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(fd)
            owner = os.stat(folder)
            if os.geteuid() == 0:
                # Salt's workers may run as the folder's owner.
                os.fchown(fd, owner.st_uid, owner.st_gid)
        os.replace(temp, path)
    except BaseException:
        os.unlink(temp)
        raise


class _locked:
    """One engine at a time for a file; says whether it is this one's turn, and never waits."""

    def __init__(self, path):
        self._path = f"{path}.lock"

    def __enter__(self):
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    def __exit__(self, *_):
        os.close(self._fd)


# --- pillar-api --------------------------------------------------------------------------------------------------


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to wherever it points."""

    def redirect_request(self, *args, **kwargs):
        return None


def _ask(options, route, token):
    import ssl

    base = urllib.parse.urlsplit(options["api_url"])
    local = base.hostname in ("127.0.0.1", "::1", "localhost")
    if base.scheme != "https" and not (base.scheme == "http" and (local or options.get("api_insecure_http") is True)):
        raise IdentityError("option api_url must be https, to keep the token secret")
    request = urllib.request.Request(
        options["api_url"].rstrip("/") + route,
        method="POST",
        headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
    )
    handlers = [urllib.request.ProxyHandler({}), _NoRedirect()]
    if base.scheme == "https":
        context = ssl.create_default_context(cafile=options.get("api_ca"))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as response:
            return json.loads(response.read(MAX_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        raise IdentityError(f"pillar-api answered {error.code}{_code(error)} to {route}") from None
    except (OSError, ValueError) as error:
        raise IdentityError(f"pillar-api did not answer, or not with JSON: {type(error).__name__}") from None


def _code(error):
    """The stable code of an RFC 9457 answer, as `` (code)``, or nothing."""
    try:
        code = json.loads(error.read(MAX_ANSWER_BYTES)).get("code")
    except (OSError, ValueError, AttributeError):
        return ""
    return f" ({code})" if isinstance(code, str) else ""
