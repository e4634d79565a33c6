"""
Runner: shows where each key of a minion's effective pillar came from, as Salt compiles it.

It compiles the pillar once, exactly as the master does for the minion, and keeps what each part contributed: the
SLS files, Colonnade, any other external pillar. From pillar-api it asks which scope won each of Colonnade's keys.
"""

import json
import logging
import os
import ssl
import stat
import urllib.error
import urllib.parse
import urllib.request

import salt.pillar
import salt.utils.minions
from salt.exceptions import CommandExecutionError

log = logging.getLogger(__name__)

MASK = "*******"
MARKER = "colonnade"
TIMEOUT_S = 10
MAX_ANSWER_BYTES = 16 * 1024 * 1024


def explain(minion, pillarenv=None, saltenv="base"):
    """
    For one minion's effective pillar: each key's value (secrets masked), where it came from, and what it overrode.

    CLI Example:

    .. code-block:: bash

        salt-run colonnade.explain web-1
        salt-run colonnade.explain web-1 pillarenv=base
    """
    options = _read_options()
    parts = _compile(minion, pillarenv, saltenv)
    envs = pillarenv or __opts__.get("pillarenv") or options.get("pillarenv", "auto")
    answer = _ask_api(options, minion, envs)
    marker = parts["effective"].get(MARKER)
    result = {
        "minion": minion,
        "master": options["master"],
        "pillarenv": answer.get("pillarenv"),
        "clock": answer.get("clock"),
        "keys": _explain_keys(parts, {entry["name"]: entry for entry in answer["keys"]}),
    }
    if parts["errors"]:
        result["errors"] = parts["errors"]
        # The first is for the job's success flag, the second for salt-run's exit code.
        __context__["retcode"] = result["retcode"] = 1
    elif isinstance(marker, dict) and marker.get("clock") != answer.get("clock"):
        result["note"] = "the estate changed between the compile and the explanation; run it again"
    return result


# --- Options and pillar-api ------------------------------------------------------------------------------------


def _read_options():
    """The master's ``colonnade`` option under those of its ext_pillar entry."""
    options = dict(__opts__.get("colonnade") or {})
    for entry in __opts__.get("ext_pillar") or []:
        if isinstance(entry, dict) and isinstance(entry.get("colonnade"), dict):
            options.update(entry["colonnade"])
    for name in ("master", "api_url", "api_token_file"):
        if not isinstance(options.get(name), str):
            raise CommandExecutionError(f"COLONNADE_MISCONFIGURED: option {name} is missing")
    return options


def _read_token(path):
    try:
        with open(path, encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.readline(16_384).strip()
    except (OSError, UnicodeDecodeError):
        raise CommandExecutionError(
            "COLONNADE_MISCONFIGURED: the file of option api_token_file cannot be read"
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise CommandExecutionError("COLONNADE_MISCONFIGURED: the file of option api_token_file is open to others")
    return token


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the bearer token to wherever it points."""

    def redirect_request(self, *args, **kwargs):
        return None


def _ask_api(options, minion, envs):
    base = urllib.parse.urlsplit(options["api_url"])
    local = base.hostname in ("127.0.0.1", "::1", "localhost")
    if base.scheme != "https" and not (base.scheme == "http" and (local or options.get("api_insecure_http") is True)):
        raise CommandExecutionError("COLONNADE_MISCONFIGURED: option api_url must be https, to keep the token secret")
    query = urllib.parse.urlencode({"master": options["master"], "minion_id": minion, "pillarenv": envs})
    request = urllib.request.Request(
        f"{options['api_url'].rstrip('/')}/explain?{query}",
        headers={"Authorization": f"Bearer {_read_token(options['api_token_file'])}", "Accept": "application/json"},
    )
    context = ssl.create_default_context(cafile=options.get("api_ca")) if base.scheme == "https" else None
    handlers = [urllib.request.ProxyHandler({}), _NoRedirect()]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as response:
            answer = json.loads(response.read(MAX_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        raise CommandExecutionError(f"pillar-api answered {error.code}{_problem_code(error)}") from None
    except (OSError, ValueError) as error:
        log.error("Colonnade: asking pillar-api failed: %s", type(error).__name__)
        raise CommandExecutionError("pillar-api did not answer, or not with JSON") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("keys"), list):
        raise CommandExecutionError("pillar-api's answer is not an explanation")
    return answer


def _problem_code(error):
    """The stable code of an RFC 9457 answer, as `` (code)``, or nothing."""
    try:
        code = json.loads(error.read(64 * 1024)).get("code")
    except (OSError, ValueError, AttributeError):
        return ""
    return f" ({code})" if isinstance(code, str) else ""


# --- The compile -------------------------------------------------------------------------------------------------


class _RecordingPillar(salt.pillar.Pillar):
    """Salt's own compiler, keeping a copy of what each part contributed."""

    def __init__(self, *args, **kwargs):
        self.sls = {}
        self.external = {}
        super().__init__(*args, **kwargs)

    def render_pillar(self, *args, **kwargs):
        pillar, errors = super().render_pillar(*args, **kwargs)
        self.sls = _copy(pillar)
        return pillar, errors

    def _external_pillar_data(self, pillar, val, key):
        data = super()._external_pillar_data(pillar, val, key)
        if isinstance(data, dict):
            self.external.setdefault(key, {}).update(_copy(data))
        return data


def _copy(value):
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _compile(minion, pillarenv, saltenv):
    """The effective pillar and its parts. Never the cached one: the cache may be older than the explanation."""
    found, grains, _ = salt.utils.minions.get_minion_data(minion, __opts__)
    # Without the master's data cache a minion's grains are unknown here; its id always is.
    grains = {**(grains or {"fqdn": minion}), "id": minion}
    compiler = _RecordingPillar(__opts__, grains, found or minion, saltenv, pillarenv=pillarenv)
    effective = compiler.compile_pillar()
    return {
        "effective": effective,
        "sls": compiler.sls,
        "colonnade": compiler.external.get("colonnade", {}),
        "others": {name: data for name, data in compiler.external.items() if name != "colonnade"},
        "errors": [str(error) for error in effective.get("_errors", [])],
    }


# --- The explanation ----------------------------------------------------------------------------------------------


def _explain_keys(parts, scopes):
    names = [name for name in parts["effective"] if name not in ("_errors", MARKER)]
    return {name: _explain_key(name, parts, scopes.get(name)) for name in sorted(names, key=str)}


def _explain_key(name, parts, scope):
    value = parts["effective"][name]
    sources = [source for source in ("sls", "colonnade") if name in parts[source]]
    sources += [f"ext_pillar {other}" for other in sorted(parts["others"]) if name in parts["others"][other]]
    # A key of Colonnade that pillar-api did not explain may be a secret made a moment ago.
    secret = "colonnade" in sources and (scope is None or scope.get("is_secret") is not False)
    entry = {"value": MASK if secret else value, "from": sources or ["unknown"]}
    if len(sources) > 1:
        entry["merged"] = _explain_merge(name, value, parts, sources)
    if scope is not None and "colonnade" in sources:
        entry["winner"] = scope.get("winner")
        entry["overrode"] = scope.get("overrode", [])
    return entry


def _explain_merge(name, value, parts, sources):
    """Where more than one source gave a key: which of its inner paths came from which, by comparing values."""
    by_source = {source: _leaves(_part(parts, source)[name], str(name)) for source in sources}
    merged = {source: [] for source in sources}
    for path, leaf in _leaves(value, str(name)).items():
        for source in reversed(sources):
            if path in by_source[source] and by_source[source][path] == leaf:
                merged[source].append(path)
                break
        else:
            merged.setdefault("mixed", []).append(path)
    return {source: paths for source, paths in merged.items() if paths}


def _part(parts, source):
    return parts[source] if source in ("sls", "colonnade") else parts["others"][source.removeprefix("ext_pillar ")]


def _leaves(value, path):
    if isinstance(value, dict) and value:
        return {inner: leaf for key, item in value.items() for inner, leaf in _leaves(item, f"{path}:{key}").items()}
    return {path: value}
