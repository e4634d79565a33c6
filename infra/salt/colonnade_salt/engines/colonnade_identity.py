"""
Engine: keeps this master's identity, a token that lives for a quarter of an hour.

It enrols once, with a one-time token of an admin's, writes what it gets into a file that is nobody else's (0600), and
renews it long before it expires. How long a token lives it says itself (``exp`` less ``iat``), and how old it is this host's own clock
since boot: no two clocks are compared, and nobody who sets one makes a token older or younger. The external pillar reads that file. The
standard library only, and no token in any log: what pillar-api says of one is its stable code.
"""

import base64
import collections
import contextlib
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

log = logging.getLogger(__name__)

TIMEOUT_S = 10
MAX_ANSWER_BYTES = 64 * 1024
# Between two looks, and after a failure: a token lives for 900 s, so there are many tries before it is too late.
TURN_S = 30
# Renewed when less than this part of its life is left.
RENEW_BELOW = 0.6
# Room kept on the disk before a token is asked for: more than one needs.
RESERVED_BYTES = 16_384
OPTIONS = ("identity_file", "enrol_token_file", "api_url", "api_ca", "api_insecure_http")


class IdentityError(Exception):
    """Why there is no identity now; the text holds no token."""


# `wall`: seconds since the epoch, as somebody has set them. `boot`: seconds since this boot, which `boot_id` names.
Moment = collections.namedtuple("Moment", "wall boot boot_id")


def read_clock():
    """The time now. CLOCK_BOOTTIME goes on while the host is suspended."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
    except OSError:
        boot_id = None
    return Moment(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), boot_id)


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


def keep(options, clock=read_clock):
    """One look: enrol when there is no identity, renew it when it is old enough. Returns what was done."""
    path = options["identity_file"]
    with _locked(path) as mine:
        if not mine:
            return "another"
        identity = read_identity(path)
        now = clock()
        left = 0 if identity is None else seconds_left(identity, now)
        if left <= 0:
            return _enrol(options, identity, now)
        # More than its whole life is what a clock says that went back, so it says nothing: asking for the next one does.
        if identity["life"] * RENEW_BELOW < left <= identity["life"]:
            return "fresh"
        with _prepared(path) as file:
            file.commit(_ask(options, "/identity/renew", identity["token"]), now)
        return "renewed"


def seconds_left(identity, now):
    """Of the token's life: by the clock since boot, and by the wall clock where the host was started anew since."""
    if now.boot_id is not None and identity.get("boot_id") == now.boot_id:
        return identity["life"] - (now.boot - identity["received_boot"])
    return identity["expires_at"] - now.wall


def _enrol(options, expired, now):
    token_file = options.get("enrol_token_file")
    if not token_file or not os.path.exists(token_file):
        what = "has expired" if expired else "is not there"
        raise IdentityError(f"the identity {what}, and there is no one-time token: an admin makes one for this master")
    token = _read_private(token_file, "enrol_token_file")
    # First the file: a one-time token is not used up for an identity that cannot be kept.
    with _prepared(options["identity_file"]) as file:
        file.commit(_ask(options, "/identity/enrol", token), now)
    try:
        # It was used: left there, it would only be taken for one that is good.
        os.unlink(token_file)
    except OSError as error:
        raise IdentityError(f"enrolled, but the used token of enrol_token_file stays: {error.strerror}") from None
    return "enrolled"


# --- Files -------------------------------------------------------------------------------------------------------


def read_identity(path):
    """The identity in the file, or None where there is none; a file that others may read is refused."""
    if not os.path.exists(path):
        return None
    try:
        found = json.loads(_read_private(path, "identity_file"))
        times = {name: float(found[name]) for name in ("issued_at", "expires_at")}
        # Of an engine before there were these, the wall clock is what counts.
        life = float(found.get("life", times["expires_at"] - times["issued_at"]))
        boot = {"boot_id": found.get("boot_id"), "received_boot": float(found.get("received_boot", 0))}
        return {"token": str(found["token"]), "life": life, **times, **boot}
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


class _prepared:
    """
    A file that can be written, before anything is asked: made with 0600, with room for an identity on its disk. It gets its name
    when it is whole, so nobody reads half of it, or more than he may.
    """

    def __init__(self, path):
        self._path = path
        self._folder = os.path.dirname(os.path.abspath(path))

    def __enter__(self):
        self._temp = None
        try:
            self._fd, self._temp = tempfile.mkstemp(dir=self._folder, prefix=".identity-")
            self._own()
            os.write(self._fd, b" " * RESERVED_BYTES)
            os.fsync(self._fd)
            mode = stat.S_IMODE(os.fstat(self._fd).st_mode)
        except OSError as error:
            self.__exit__()
            raise _unwritable(error) from None
        if mode == 0o600:
            return self
        self.__exit__()
        raise IdentityError("the folder of option identity_file keeps no mode 0600; nothing was asked for")

    def commit(self, answer, now):
        """``now``: a moment before it was asked for, so that its age is never too small."""
        content = {**_read_answer(answer), "issued_at": now.wall, "received_boot": now.boot, "boot_id": now.boot_id}
        content["expires_at"] = now.wall + content["life"]
        text = json.dumps(content).encode("ascii")
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))
        os.fsync(self._fd)
        os.replace(self._temp, self._path)
        self._temp = None

    def _own(self):
        if os.geteuid() != 0:
            return
        # Salt's workers may run as the folder's owner.
        owner = os.stat(self._folder)
        os.fchown(self._fd, owner.st_uid, owner.st_gid)

    def __exit__(self, *_):
        if self._temp is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temp)
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._fd)


def _unwritable(error):
    why = f"cannot be written: {error.strerror}"
    return IdentityError(f"the file of option identity_file {why}; nothing was asked for")


def _read_answer(answer):
    """The token, and how long it lives by its own claims; whether they are true, whoever it is shown to looks."""
    try:
        token = str(answer["token"])
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        life = float(claims["exp"]) - float(claims["iat"])
    except (KeyError, IndexError, TypeError, ValueError):
        raise IdentityError("pillar-api's answer is not an identity") from None
    if not 0 < life <= 86_400 or len(token) > 8192 or not token.isascii():
        raise IdentityError("pillar-api's answer is not an identity")
    return {"token": token, "life": life}


class _locked:
    """One engine at a time for a file; says whether it is this one's turn, and never waits."""

    def __init__(self, path):
        self._path = f"{path}.lock"

    def __enter__(self):
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(error) from None
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
