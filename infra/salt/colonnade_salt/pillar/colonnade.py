"""
External pillar: asks Colonnade's pillar-merger for a minion's merged pillar, over the Redis bridge.

One source serves both installs: as part of the package ``colonnade-salt``, and copied alone to
``<extension_modules>/pillar/colonnade.py``. Hence one file, and the standard library only at the top:
Salt *skips* an ext_pillar that cannot be imported, and states then run green without their data.
For the same reason there is no ``__virtual__``, ``redis`` is imported inside a function, and every success
carries the marker key ``colonnade`` which the guard state checks.

It fails closed. Whatever goes wrong ends as a :class:`ColonnadeError` whose text is a fixed code, because
Salt delivers that text to minions; the details go to the master's log, without secrets.
"""

import fcntl
import hashlib
import json
import logging
import os
import queue
import re
import stat
import sys
import threading
import time
import types

log = logging.getLogger(__name__)

MARKER = "colonnade"
MAX_REQUEST_BYTES = 16 * 1024
MAX_REPLY_BYTES = 8 * 1024 * 1024
# The bridge accepts no shorter time to live, so with less than this left nothing is asked any more.
MIN_TTL_MS = 100
RETRY_PAUSE_S = 0.15

# What a merger may answer. Anything else is a reply we do not understand.
MERGER_CODES = frozenset(
    [
        *("bad_request", "unauthorized", "forbidden", "unknown_master", "unknown_minion", "overloaded"),
        *("expired", "too_large", "unavailable", "kms_unavailable", "kms_refused", "internal"),
    ]
)
# Worth one more try with a new id: nothing was decided about this minion, and another try may meet another merger.
_AGAIN = frozenset(["no_merger", "redis_unavailable", "unavailable", "kms_unavailable"])
# The bridge itself does not answer, so asking again for the next minion only holds another of Salt's workers.
_TRIPS = frozenset(["no_merger", "redis_unavailable", "timeout"])

_MASTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,8192}\Z")


class ColonnadeError(Exception):
    """A failure as the minion may see it: the text is ``COLONNADE_<CODE>`` alone; ``detail`` is for the log."""

    def __init__(self, code, detail=""):
        super().__init__("COLONNADE_" + code.upper())
        self.code = code
        self.detail = detail


def ext_pillar(minion_id, pillar, *args, **kwargs):
    """
    Return the minion's merged pillar and the marker, or raise :class:`ColonnadeError`; never an empty answer.

    Options: see the README; from this entry's mapping, over those of the master's ``colonnade`` option.
    """
    failure = None
    try:
        return _fetch(__opts__, minion_id, args, kwargs)
    except ColonnadeError as error:
        failure = error
    except Exception as error:  # Whatever it is, its text must not reach a minion.
        failure = ColonnadeError("internal", f"unexpected {type(error).__name__} in the module")
    log.error("Colonnade: no pillar for minion %r: %s: %s", minion_id, failure, failure.detail)
    raise ColonnadeError(failure.code) from None


def _fetch(opts, minion_id, args, kwargs):
    conf = _read_options(opts, args, kwargs)
    # Before the clock starts: a worker imports it once, which on a busy host takes a good part of the budget.
    redis = _import_redis()
    deadline = time.monotonic() + conf["budget_ms"] / 1000
    breaker = _Breaker(opts, conf)
    if not breaker.allows():
        raise ColonnadeError("circuit_open", "the bridge failed repeatedly; waiting before it is asked again")
    try:
        reply = _ask(redis, conf, minion_id, opts.get("pillarenv") or conf["pillarenv"], deadline)
    except ColonnadeError as error:
        if error.code in _TRIPS or error.code in MERGER_CODES:
            breaker.record(error.code not in _TRIPS)
        raise
    breaker.record(True)
    result = dict(reply["pillar"])
    if MARKER in result:
        log.warning("Colonnade: the pillar named %r is hidden by the bridge's marker", MARKER)
    result[MARKER] = {"bridge": "ok", "clock": reply["clock"], "master": conf["master"]}
    return result


# --- Options -----------------------------------------------------------------------------------------------


def _text(value):
    return isinstance(value, str) and value != ""


def _integer(low, high):
    return lambda value: type(value) is int and low <= value <= high


def _flag(value):
    return isinstance(value, bool)


_TLS_OPTIONS = {"ca": _text, "cert": _text, "key": _text, "server_name": _text}
_BREAKER_OPTIONS = {"failures": _integer(1, 1000), "cooldown_ms": _integer(100, 600_000)}
_SENTINEL_OPTIONS = {
    "hosts": lambda value: isinstance(value, list) and value and all(_address(host) for host in value),
    "service": _text,
    "username": _text,
    "password": _text,
    "password_file": _text,
    "tls": _flag,
}
_OPTIONS = {
    "master": lambda value: isinstance(value, str) and _MASTER.match(value),
    "host": _text,
    "port": _integer(1, 65535),
    "unix_socket": _text,
    "username": _text,
    "password": _text,
    "password_file": _text,
    "token": _text,
    "token_file": _text,
    "identity_file": _text,
    # Read by the engine alone.
    "enrol_token_file": _text,
    "pillarenv": _text,
    "budget_ms": _integer(200, 10_000),
    "max_queue": _integer(1, 1_000_000),
    "allow_pillar_cache": _flag,
    "tls": lambda value: _flag(value) or isinstance(value, dict),
    "sentinel": lambda value: isinstance(value, dict),
    "breaker": lambda value: isinstance(value, dict),
    # Read by the runner alone.
    "api_url": _text,
    "api_token_file": _text,
    "api_ca": _text,
    "api_insecure_http": _flag,
}
_DEFAULTS = {"host": "127.0.0.1", "port": 6379, "pillarenv": "auto", "budget_ms": 2000, "max_queue": 1000}


def _misconfigured(what):
    return ColonnadeError("misconfigured", what)


def _address(text):
    """``host:port`` (an IPv6 address in brackets) as a pair, or None."""
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        return None
    return host.strip("[]"), int(port)


def _check(options, known, prefix=""):
    for name, value in options.items():
        if name not in known:
            raise _misconfigured(f"unknown option {prefix}{name}")
        if not known[name](value):
            raise _misconfigured(f"option {prefix}{name} has a value that is not allowed")


def _read_options(opts, args, kwargs):
    """The validated options of this entry over the master's ``colonnade`` option, secrets read from their files."""
    if any(arg is not None for arg in args):
        raise _misconfigured("ext_pillar's colonnade entry must be a mapping of options")
    shared = opts.get("colonnade") or {}
    if not isinstance(shared, dict):
        raise _misconfigured("the master's option colonnade must be a mapping")
    given = {**shared, **kwargs}
    _check(given, _OPTIONS)
    _refuse_exposure(opts, given)
    conf = {**_DEFAULTS, **given}
    if "master" not in conf:
        raise _misconfigured("option master (the logical master's id) is missing")
    conf["password"] = _secret(given, "password")
    conf["token"] = _identity(given) or _secret(given, "token")
    if not conf["token"] or not _TOKEN.match(conf["token"]):
        what = "token_file (or token)" if "identity_file" not in given else "identity_file, or token_file beside it,"
        raise _misconfigured(f"option {what} must give the master's token")
    conf["tls"] = _tls_options(given.get("tls"))
    conf["breaker"] = {"failures": 5, "cooldown_ms": 3000, **given.get("breaker", {})}
    _check(conf["breaker"], _BREAKER_OPTIONS, "breaker.")
    if "sentinel" in given:
        conf["sentinel"] = _sentinel_options(given["sentinel"])
    return conf


def _refuse_exposure(opts, given):
    """Settings of the master under which secrets would lie on a disk, or go to every minion."""
    if opts.get("pillar_cache") and not given.get("allow_pillar_cache"):
        raise _misconfigured(
            "pillar_cache: True writes decrypted pillars to the disk; set allow_pillar_cache to accept that"
        )
    if MARKER in (opts.get("on_demand_ext_pillar") or ()):
        raise _misconfigured("on_demand_ext_pillar must not name colonnade: minions would choose its options")
    if opts.get("pillar_opts") and ("password" in given or "token" in given):
        raise _misconfigured("pillar_opts: True shows minions the master's options; use password_file and token_file")


def _tls_options(tls):
    if not tls:
        return None
    tls = {} if tls is True else tls
    _check(tls, _TLS_OPTIONS, "tls.")
    for name in ("ca", "cert", "key"):
        if name in tls and not os.access(tls[name], os.R_OK):
            raise _misconfigured(f"the file of option tls.{name} cannot be read")
    if "key" in tls and "cert" not in tls:
        raise _misconfigured("option tls.key needs tls.cert")
    return tls


def _sentinel_options(sentinel):
    _check(sentinel, _SENTINEL_OPTIONS, "sentinel.")
    for name in ("hosts", "service"):
        if name not in sentinel:
            raise _misconfigured(f"option sentinel.{name} is missing")
    return {**sentinel, "password": _secret(sentinel, "password", "sentinel.")}


def _identity(options):
    """The token the engine ``colonnade_identity`` keeps, or None when there is none that is good now."""
    path = options.get("identity_file")
    if path is None:
        return None
    if not os.path.exists(path):
        log.warning("Colonnade: there is no identity in the file of option identity_file")
        return None
    try:
        found = json.loads(_secret(options, "identity"))
        if _identity_lives(found):
            return found["token"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _misconfigured("the file of option identity_file is not one of the engine's") from None
    log.warning("Colonnade: the identity in the file of option identity_file has expired")
    return None


def _identity_lives(found):
    """By the clock since boot, as the engine has received it; by the wall clock where the host was started anew since."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
    except OSError:
        boot_id = None
    if boot_id is not None and found.get("boot_id") == boot_id:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - found["received_boot"] < found["life"]
    return found["expires_at"] > time.time()


def _secret(options, name, prefix=""):
    """The option itself, or the first line of its ``_file``, which nobody else on the machine may read."""
    file_name = f"{name}_file"
    if file_name not in options:
        return options.get(name)
    if name in options:
        raise _misconfigured(f"options {prefix}{name} and {prefix}{file_name} exclude each other")
    try:
        with open(options[file_name], encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.readline(16_384).strip()
    except (OSError, UnicodeDecodeError):
        raise _misconfigured(f"the file of option {prefix}{file_name} cannot be read") from None
    if stat.S_IMODE(mode) & 0o077:
        raise _misconfigured(f"the file of option {prefix}{file_name} is open to others; chmod it to 0600")
    if not text:
        raise _misconfigured(f"the file of option {prefix}{file_name} is empty")
    return text


# --- State that outlives a compile ----------------------------------------------------------------------------


def _process_state():
    """
    Connection pools and the breaker's fallback, kept for this process.

    Salt executes this module anew at every compile, which empties its globals, and its workers are forks. So the
    state hangs in ``sys.modules`` below the process id: a child starts with its own and never touches its
    parent's sockets.
    """
    holder = sys.modules.setdefault("_colonnade_salt_state", types.ModuleType("_colonnade_salt_state"))
    by_pid = holder.__dict__.setdefault("by_pid", {})
    pid = os.getpid()
    if pid not in by_pid:
        for other in [key for key in list(by_pid) if key != pid]:
            by_pid.pop(other, None)
    return by_pid.setdefault(pid, types.SimpleNamespace(pools={}, breakers={}))


class _Breaker:
    """
    After some failures in a row the bridge is asked again only once per cool-down, until it answers.

    Salt's workers are processes, so the count is in a small file of the master's cachedir: what one worker learnt
    spares the others their two seconds. Where the file cannot be used, each process counts for itself.
    """

    def __init__(self, opts, conf):
        where = conf.get("sentinel", {}).get("hosts") or conf.get("unix_socket") or [conf["host"], conf["port"]]
        self._name = hashlib.sha256(repr((conf["master"], where)).encode()).hexdigest()[:16]
        self._dir = os.path.join(opts["cachedir"], "colonnade") if opts.get("cachedir") else None
        self._limit = conf["breaker"]["failures"]
        self._cooldown = conf["breaker"]["cooldown_ms"] / 1000

    def allows(self):
        """Whether the bridge may be asked now. In a cool-down's end the first caller may, as a probe."""
        return self._change(self._admit)

    def record(self, answered):
        """Tells whether the bridge answered at all; what it answered does not matter."""
        self._change(self._succeed if answered else self._fail)

    # Times are of CLOCK_MONOTONIC, one for all processes of a host; one from before a reboot lies in the future.
    def _admit(self, seen):
        now = time.monotonic()
        if seen["failures"] < self._limit:
            return True
        if 0 <= now - seen["at"] < self._cooldown:
            return False
        seen["at"] = now
        return True

    def _succeed(self, seen):
        seen["failures"] = 0

    def _fail(self, seen):
        seen.update(failures=seen["failures"] + 1, at=time.monotonic())

    def _change(self, step):
        try:
            return self._change_file(step)
        except OSError:
            return step(_process_state().breakers.setdefault(self._name, {"failures": 0, "at": 0.0}))

    def _change_file(self, step):
        if self._dir is None:
            raise OSError("no cachedir")
        with os.fdopen(self._open(), "r+", encoding="ascii") as file:
            _lock(file)
            before = _parse_breaker(file.read(256))
            after = dict(before)
            result = step(after)
            if after != before:
                file.seek(0)
                file.write(json.dumps(after))
                file.truncate()
            return result

    def _open(self):
        path = os.path.join(self._dir, f"breaker-{self._name}.json")
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            os.makedirs(self._dir, mode=0o700, exist_ok=True)
            fd = os.open(path, flags | os.O_CREAT, 0o600)
            if os.geteuid() == 0:
                # A runner started by root must not shut out workers that run as the cachedir's owner.
                owner = os.stat(os.path.dirname(self._dir))
                os.chown(self._dir, owner.st_uid, owner.st_gid)
                os.fchown(fd, owner.st_uid, owner.st_gid)
            return fd


def _lock(file):
    """Lock the file, but never wait long for a worker that was stopped while holding the lock."""
    for _ in range(20):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.001)
    raise OSError("the breaker's file is locked")


def _parse_breaker(text):
    try:
        seen = json.loads(text)
        return {"failures": int(seen["failures"]), "at": float(seen["at"])}
    except (ValueError, TypeError, KeyError):
        return {"failures": 0, "at": 0.0}


# --- Redis ------------------------------------------------------------------------------------------------------


def _import_redis():
    try:
        import redis
        import redis.backoff
        import redis.retry
        import redis.sentinel
    except ImportError:
        raise _misconfigured("the Python package redis is not installed for the Python that runs Salt") from None
    return redis


def _client(redis, conf):
    """A client on this process's pool for exactly these options; a changed password or host gets a new pool."""
    identity = repr(
        [conf.get(name) for name in ("host", "port", "unix_socket", "username", "password", "tls", "sentinel")]
    )
    key = hashlib.sha256(f"{identity}{conf['master']}{conf['budget_ms']}".encode()).hexdigest()
    pools = _process_state().pools
    if key not in pools:
        if len(pools) >= 8:
            pools.clear()
        pools[key] = _make_pool(redis, conf)
    return redis.Redis(connection_pool=pools[key])


def _make_pool(redis, conf):
    budget = conf["budget_ms"] / 1000
    common = {
        # Retrying is decided by us: the library would repeat a request that may have been taken.
        "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        "socket_connect_timeout": budget,
        # Only frees an abandoned connection: the caller's deadline is kept by `_bounded`.
        "socket_timeout": budget + 1,
    }
    if int(redis.__version__.split(".")[0]) >= 5:
        common["protocol"] = 2
    tls = _tls_arguments(conf["tls"])
    server = {
        **common,
        **tls,
        "username": conf.get("username"),
        "password": conf["password"],
        "client_name": f"colonnade-{conf['master']}",
    }
    if "sentinel" in conf:
        return _make_sentinel_pool(redis, conf, common, server)
    if "unix_socket" in conf:
        # Connecting to one never waits, and old versions of the library know no limit for it.
        del server["socket_connect_timeout"]
        return redis.ConnectionPool(
            connection_class=redis.UnixDomainSocketConnection, path=conf["unix_socket"], **server
        )
    plain, secure = redis.Connection, redis.SSLConnection
    return redis.ConnectionPool(
        connection_class=_named_tls(redis, secure, conf["tls"]) if tls else plain,
        host=conf["host"],
        port=conf["port"],
        **server,
    )


def _make_sentinel_pool(redis, conf, common, server):
    options = conf["sentinel"]
    ask = {**common, "username": options.get("username"), "password": options["password"]}
    # One dead sentinel must leave time for the others.
    ask["socket_connect_timeout"] = ask["socket_timeout"] = conf["budget_ms"] / 4000
    if conf["tls"] is not None and options.get("tls", True):
        ask.update(ssl=True, **_tls_arguments(conf["tls"]))
    sentinel = redis.sentinel.Sentinel([_address(host) for host in options["hosts"]], sentinel_kwargs=ask)
    managed = redis.sentinel.SentinelManagedConnection
    secure = redis.sentinel.SentinelManagedSSLConnection
    return redis.sentinel.SentinelConnectionPool(
        options["service"],
        sentinel,
        connection_class=_named_tls(redis, secure, conf["tls"]) if conf["tls"] is not None else managed,
        **server,
    )


def _tls_arguments(tls):
    if tls is None:
        return {}
    return {
        "ssl_cert_reqs": "required",
        # Not the default in every version of the library.
        "ssl_check_hostname": True,
        "ssl_ca_certs": tls.get("ca"),
        "ssl_certfile": tls.get("cert"),
        "ssl_keyfile": tls.get("key"),
    }


def _named_tls(redis, secure, tls):
    """The library checks a certificate against the address it dialled; this lets ``tls.server_name`` stand in."""
    name = tls.get("server_name")
    if name is None:
        return secure

    class Dialled(redis.Connection):
        def _connect(self):
            sock = super()._connect()
            self.host = name
            return sock

    class NamedTlsConnection(secure, Dialled):
        def _connect(self):
            address = self.host
            try:
                return super()._connect()
            finally:
                self.host = address

    return NamedTlsConnection


# --- One request ------------------------------------------------------------------------------------------------


def _ask(redis, conf, minion_id, pillarenv, deadline):
    """The checked reply. One retry, with a new id, while the budget lasts."""
    try:
        return _bounded(lambda: _exchange(redis, conf, minion_id, pillarenv, deadline), deadline)
    except ColonnadeError as error:
        pause = min(RETRY_PAUSE_S, (deadline - time.monotonic()) / 4)
        if error.code not in _AGAIN or pause <= 0:
            raise
        log.info("Colonnade: asking again for minion %r after %s: %s", minion_id, error, error.detail)
    time.sleep(pause)
    return _bounded(lambda: _exchange(redis, conf, minion_id, pillarenv, deadline), deadline)


def _bounded(work, deadline):
    """
    The result of ``work``, or a timeout at the deadline whatever it is doing.

    A socket's own timeouts bound neither the look-up of a name nor an answer that drips in. A thread left behind
    ends by itself: every step of it has a socket timeout.
    """
    results = queue.SimpleQueue()

    def run():
        try:
            results.put((work(), None))
        except BaseException as error:
            results.put((None, error))

    threading.Thread(target=run, name="colonnade-bridge", daemon=True).start()
    try:
        result, error = results.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        raise ColonnadeError("timeout", "no answer within budget_ms") from None
    if error is not None:
        raise error
    return result


def _exchange(redis, conf, minion_id, pillarenv, deadline):
    ttl_ms = int((deadline - time.monotonic()) * 1000)
    if ttl_ms < MIN_TTL_MS:
        raise ColonnadeError("timeout", "too little of budget_ms was left to ask")
    request = _encode_request(conf, minion_id, pillarenv, ttl_ms)
    master = conf["master"]
    try:
        client = _client(redis, conf)
        # The alive key is no key of the call: Redis would ask for the right to write it.
        entry = client.execute_command(
            "FCALL", "colonnade_bridge_request", 1, f"colonnade:bridge:req:{master}", conf["max_queue"], request
        )
        entry = entry.decode("ascii")
        # A little past the deadline: a timeout of 0 would wait for ever.
        wait_s = max(0.01, deadline - time.monotonic())
        popped = client.execute_command("BLPOP", f"colonnade:bridge:rep:{master}:{entry}", f"{wait_s:.3f}")
    except Exception as error:
        raise _translate(redis, error) from None
    if popped is None:
        raise ColonnadeError("timeout", f"no merger answered request {entry}")
    return _check_reply(popped[1], entry)


def _encode_request(conf, minion_id, pillarenv, ttl_ms):
    if not _text(minion_id) or not _text(pillarenv):
        raise ColonnadeError("bad_request", "minion id and pillarenv must be text")
    request = {
        "event": "master_get_pillar_data",
        "master": conf["master"],
        "minion_id": minion_id,
        "pillarenv": pillarenv,
        "token": conf["token"],
        "ttl_ms": ttl_ms,
        "v": 1,
    }
    try:
        data = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ColonnadeError("bad_request", "minion id or pillarenv is not valid Unicode") from None
    if len(data) > MAX_REQUEST_BYTES:
        raise ColonnadeError("bad_request", f"the request is longer than {MAX_REQUEST_BYTES} bytes")
    return data


def _translate(redis, error):
    """A failure of the client library as ours. Its texts may quote a command's arguments, so few are repeated."""
    if isinstance(error, ColonnadeError):
        return error
    kinds = redis.exceptions
    text = str(error)
    first = text.removeprefix("ERR ").split(" ", 1)[0]
    if isinstance(error, kinds.AuthenticationError) or first in ("WRONGPASS", "NOAUTH"):
        return _misconfigured("Redis refused username and password")
    if isinstance(error, kinds.TimeoutError):
        return ColonnadeError("redis_unavailable", "Redis does not answer in time")
    if isinstance(error, (kinds.ConnectionError, kinds.ReadOnlyError)):
        return ColonnadeError("redis_unavailable", text[:300])
    if not isinstance(error, kinds.ResponseError):
        return error
    if first in ("NO_MERGER", "OVERLOADED"):
        return ColonnadeError(first.lower(), text[:300])
    if "Function not found" in text:
        return ColonnadeError(
            "no_merger", "the bridge's functions are not loaded: no merger has come to this Redis yet"
        )
    if "unknown command" in text:
        return _misconfigured("this Redis has no functions: it must be 7.0 or later")
    if isinstance(error, kinds.NoPermissionError) or "NOPERM" in text or "permissions" in text:
        return _misconfigured(
            f"Redis's ACL does not let the user of option username use the bridge of this master: {text[:200]}"
        )
    return ColonnadeError("redis_unavailable", f"Redis answered an error of kind {first[:40]}")


def _check_reply(data, entry):
    """The reply, if it is one of ours to this very request; a merger's refusal is raised as an error."""
    if len(data) > MAX_REPLY_BYTES:
        raise ColonnadeError("bad_reply", "the reply is over the limit")
    try:
        reply = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ColonnadeError("bad_reply", f"the reply to request {entry} is not JSON") from None
    if not isinstance(reply, dict) or reply.get("id") != entry or reply.get("v") != 1:
        raise ColonnadeError("bad_reply", f"the reply to request {entry} is not a reply to it")
    if reply.get("ok") is False:
        raise _refusal(reply.get("error"), entry)
    pillar, clock = reply.get("pillar"), reply.get("clock")
    if reply.get("ok") is not True or not isinstance(pillar, dict) or type(clock) is not int or clock < 0:
        raise ColonnadeError("bad_reply", f"the reply to request {entry} lacks ok, pillar or clock")
    if "_errors" in pillar:
        raise ColonnadeError("bad_reply", "a pillar must not be named _errors")
    return reply


def _refusal(error, entry):
    error = error if isinstance(error, dict) else {}
    code, message = error.get("code"), error.get("message")
    if code not in MERGER_CODES:
        return ColonnadeError("bad_reply", f"request {entry} was refused with an unknown code")
    return ColonnadeError(code, f"request {entry}: {str(message)[:300]!r}")


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")
