"""What the tests of the ext_pillar module share: a real Redis, the module loaded as Salt loads it, its options."""

import hashlib
import importlib.machinery
import logging
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest

import redis

MODULE = pathlib.Path(__file__).parent.parent / "colonnade_salt" / "pillar" / "colonnade.py"
MASTER = "m1"
PASSWORD = "pw-of-the-master-7d1f"
TOKEN = "eyJhbGciOiJFZERTQSJ9.token-of-the-master.c2lnbmF0dXJl"
REDIS_SERVER = os.environ.get("COLONNADE_REDIS_SERVER") or shutil.which("redis-server")


def acl_rules(master, password):
    """The Redis user of a master, as `masterAclRules` of the contracts makes it."""
    digest = hashlib.sha256(password.encode()).hexdigest()
    commands = "fcall xadd xlen exists time ping hello auth client|setname"
    return [
        *("reset", "on", f"#{digest}", "resetchannels", "-@all"),
        *(f"+{command}" for command in commands.split()),
        f"~colonnade:bridge:req:{master}",
        f"(+blpop +lpop ~colonnade:bridge:rep:{master}:*)",
        f"(+xread +xrevrange %R~colonnade:bridge:refresh:{master})",
        "%R~colonnade:bridge:alive",
    ]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for(condition, what, limit_s=10):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit_s} s for {what}")
        time.sleep(0.01)


class RedisServer:
    """A redis-server on a free port of the loopback, with the master's user; its memory is all it has."""

    def __init__(self, folder, *extra, port=None):
        self.port = port or free_port()
        self._folder = folder
        self._extra = extra
        self._process = None

    def start(self):
        arguments = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self._folder]
        self._process = subprocess.Popen(
            [REDIS_SERVER, "--port", str(self.port), *arguments, *self._extra],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(self._answers, "redis-server to answer")
            self.set_user(MASTER, PASSWORD)
        except BaseException:
            self.stop()
            raise
        return self

    def _answers(self):
        if self._process.poll() is not None:
            raise AssertionError("redis-server ended")
        try:
            with self.admin() as client:
                return client.ping()
        except redis.exceptions.ConnectionError:
            return False

    def set_user(self, master, password):
        with self.admin() as client:
            client.execute_command("ACL", "SETUSER", f"master-{master}", *acl_rules(master, password))

    def admin(self):
        return redis.Redis(port=self.port, decode_responses=True)

    def connection(self):
        return {"host": "127.0.0.1", "port": self.port}

    def stop(self):
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None


def load_module(name="salt.loaded.ext.pillar.colonnade"):
    """Load the module as Salt does at every compile: its code runs anew in the same module object."""
    module = sys.modules.setdefault(name, types.ModuleType(name))
    loader = importlib.machinery.SourceFileLoader(name, str(MODULE))
    module.__file__ = str(MODULE)
    exec(loader.get_code(name), module.__dict__)  # what load_module does for a module it knows
    return module


class LogRecorder(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class ModuleCase(unittest.TestCase):
    """One Redis per class; for each test fresh state, a cachedir, and a look at the log for secrets."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="colonnade-salt-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.redis = RedisServer(cls.folder).start()
        cls.addClassCleanup(cls.redis.stop)

    def setUp(self):
        self.cachedir = tempfile.mkdtemp(dir=self.folder)
        sys.modules.pop("_colonnade_salt_state", None)
        with self.redis.admin() as client:
            client.flushall()
            client.execute_command("FUNCTION", "FLUSH")
        self.log = LogRecorder()
        logger = logging.getLogger("salt.loaded.ext.pillar.colonnade")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(self.log)
        self.addCleanup(logger.removeHandler, self.log)
        self.addCleanup(self._check_log)

    def _check_log(self):
        for line in self.log.lines:
            self.assertNotIn(PASSWORD, line)
            self.assertNotIn(TOKEN, line)

    def options(self, **changes):
        options = {
            "master": MASTER,
            "port": self.redis.port,
            "username": f"master-{MASTER}",
            "password": PASSWORD,
            "token": TOKEN,
            "budget_ms": 1000,
            **changes,
        }
        return {name: value for name, value in options.items() if value is not None}

    def compile(self, minion="web-1", opts=None, **changes):
        """What Salt does: the module loaded anew, `__opts__` packed into it, the entry's mapping as arguments."""
        module = load_module()
        module.__opts__ = {"id": minion, "cachedir": self.cachedir, "pillarenv": None, **(opts or {})}
        return module.ext_pillar(minion, {}, **self.options(**changes))

    def refuse(self, code, *args, **changes):
        """The compile must fail with this code, and with nothing else in what a minion would be told."""
        start = time.monotonic()
        with self.assertRaises(Exception) as caught:
            self.compile(*args, **changes)
        self.assertEqual(str(caught.exception), code)
        self.assertEqual(type(caught.exception).__name__, "ColonnadeError")
        self.assertTrue(caught.exception.__suppress_context__)
        self.assertIsNone(caught.exception.__cause__)
        return time.monotonic() - start

    def logged(self):
        return "\n".join(self.log.lines)
