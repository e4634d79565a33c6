"""
Engine: has Salt refresh the pillar of just those minions whose pillar changed, when Colonnade says so.

It reads the master's own refresh stream on the Redis bridge, with the options, the user and the TLS of the external
pillar beside it, and publishes ``saltutil.refresh_pillar`` for the minions named, in batches with a pause between
them. What it has read last is kept in a file of the master's cachedir and moved on only after the call, so each
entry is done at least once; a refresh too many does no harm. It reads and changes nothing in Redis: masters of a
failover group each read the same stream for themselves.
"""

import hashlib
import importlib.util
import json
import logging
import os
import pathlib
import random
import re
import sys
import time

log = logging.getLogger(__name__)

FUNCTION = "saltutil.refresh_pillar"
ENTRIES = 100
FIRST_PAUSE_S, LAST_PAUSE_S = 1, 30
_ID = re.compile(r"(\d{1,20})-(\d{1,20})\Z")


def start(batch=100, splay_ms=2000, max_age_s=3600):
    """
    Work until the master ends. Salt calls this in a process of its own, and starts it anew should it end.

    batch: minions of one call. splay_ms: the pause between two calls is random, at most so long. max_age_s: what
    waited longer in the stream is dropped.
    """
    limits = {"batch": (batch, 1, 10_000), "splay_ms": (splay_ms, 0, 3_600_000), "max_age_s": (max_age_s, 1, 864_000)}
    for name, (value, low, high) in limits.items():
        if type(value) is not int or not low <= value <= high:
            # Ended, it would be started again at once, over and over.
            log.critical("Colonnade: no pillar is refreshed: option %s must be from %d to %d", name, low, high)
            while True:
                time.sleep(3600)
    pause = FIRST_PAUSE_S
    while True:
        try:
            turn(batch, splay_ms / 1000, max_age_s)
            pause = FIRST_PAUSE_S
        except Exception as error:
            log.error("Colonnade: no pillar is refreshed for now: %s", _describe(error))
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)


def turn(batch, splay_s, max_age_s):
    """Take what is in the stream, or wait a moment for something. Raises what keeps it from that."""
    bridge = _bridge()
    conf = bridge._read_options(__opts__, (), _entry_options())
    redis = bridge._import_redis()
    client = bridge._client(redis, conf)
    cursor = _Cursor(conf)
    try:
        entries, now_ms = _read(client, conf, cursor)
    except Exception as error:
        raise bridge._translate(redis, error) from None
    if entries:
        _refresh(_minions_of(entries, now_ms - max_age_s * 1000), batch, splay_s)
        cursor.move(entries[-1][0])


def _entry_options():
    """The options of the master's ext_pillar entry: they are the engine's too."""
    for entry in __opts__.get("ext_pillar") or []:
        if isinstance(entry, dict) and isinstance(entry.get("colonnade"), dict):
            return entry["colonnade"]
    return {}


def _bridge():
    """The external pillar's module, which lies beside this one however it was installed."""
    name = "_colonnade_salt_bridge"
    if name not in sys.modules:
        file = pathlib.Path(__file__).parent.parent / "pillar" / "colonnade.py"
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


def _describe(error):
    """Texts of Salt or of the system may hold anything; ours hold no secret."""
    detail = getattr(error, "detail", None)
    return f"{error}: {detail}" if detail is not None else f"unexpected {type(error).__name__}"


# --- The stream --------------------------------------------------------------------------------------------------


def _read(client, conf, cursor):
    """New entries as pairs of id and fields, and Redis' own time, by which their age counts."""
    key = f"colonnade:bridge:refresh:{conf['master']}"
    last = client.execute_command("XREVRANGE", key, "+", "-", "COUNT", 1)
    if last and _order(_text(last[0][0])) < _order(cursor.last):
        # Redis was started anew and its clock set back: what is in the stream came after what was read.
        cursor.move("0-0")
    answer = client.execute_command("XREAD", "COUNT", ENTRIES, "BLOCK", conf["budget_ms"], "STREAMS", key, cursor.last)
    if not answer:
        return [], 0
    seconds, micros = client.execute_command("TIME")
    entries = [(_text(entry), fields) for entry, fields in answer[0][1]]
    return entries, int(seconds) * 1000 + int(micros) // 1000


def _minions_of(entries, oldest_ms):
    """The minions of all entries, each once, in the order they came. What is too old or not understood is left out."""
    minions = {}
    for entry, fields in entries:
        if _order(entry)[0] < oldest_ms:
            log.warning("Colonnade: refresh %s is too old and dropped", entry)
            continue
        try:
            named = _parse(fields)
        except (ValueError, RecursionError):
            log.error("Colonnade: refresh %s is not understood and left out", entry)
            continue
        minions.update(dict.fromkeys(named))
    return list(minions)


def _parse(fields):
    given = dict(zip(fields[::2], fields[1::2])) if isinstance(fields, list) else fields
    message = json.loads((given.get(b"data") or given.get("data") or b"").decode("utf-8"))
    minions = message.get("minions") if isinstance(message, dict) else None
    if not isinstance(minions, list) or not all(isinstance(minion, str) and minion for minion in minions):
        raise ValueError("no minions")
    return minions


def _text(value):
    return value.decode("ascii") if isinstance(value, bytes) else value


def _order(entry):
    match = _ID.match(entry)
    return (int(match[1]), int(match[2])) if match else (0, 0)


class _Cursor:
    """The last entry that was done, in a file beside the breaker's. Where it is lost, all entries are done again."""

    def __init__(self, conf):
        name = hashlib.sha256(conf["master"].encode()).hexdigest()[:16]
        self._file = pathlib.Path(__opts__["cachedir"], "colonnade", f"refresh-{name}")
        try:
            text = self._file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            text = ""
        self.last = text if _ID.match(text) else "0-0"

    def move(self, entry):
        """Raises OSError: the entry counts as not done then."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(entry, encoding="ascii")
        os.replace(fresh, self._file)
        self.last = entry


# --- Salt --------------------------------------------------------------------------------------------------------


def _refresh(minions, batch, splay_s):
    """Publish for all of them. Raises when Salt did not take one of the calls; then all are called again."""
    for begin in range(0, len(minions), batch):
        if begin > 0:
            time.sleep(random.uniform(0, splay_s))
        some = minions[begin : begin + batch]
        _publish(some)
        log.info("Colonnade: pillar of %d minions is refreshed", len(some))


def _publish(minions):
    # Salt itself is imported here, so that the rest can be tried without it.
    import salt.client

    with salt.client.get_local_client(mopts=__opts__) as client:
        # A minion that is not accepted, or away, is no fault: it gets its pillar when it comes.
        answer = client.pub(minions, FUNCTION, (), "list", listen=False)
    if not isinstance(answer, dict) or "jid" not in answer:
        raise RuntimeError("the master did not take the call")
