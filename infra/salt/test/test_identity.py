"""The engine that keeps the identity, and the external pillar's reading of it; a pillar-api of the standard library."""

import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import stat
import tempfile
import threading
import time
import unittest
from datetime import datetime, timezone

from fake_merger import FakeMerger
from support import MASTER, TOKEN, ModuleCase

ENGINE = pathlib.Path(__file__).parent.parent / "colonnade_salt" / "engines" / "colonnade_identity.py"
ONCE = "cole_5f1d0f0e-aaaa-bbbb-cccc-1234567890ab_" + "x" * 43


def load_engine():
    spec = importlib.util.spec_from_file_location("colonnade_identity", ENGINE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FakeApi(http.server.BaseHTTPRequestHandler):
    """Answers as pillar-api does; `server.asked` is what came, `server.answer` what goes back."""

    def do_POST(self):
        self.server.asked.append((self.path, self.headers["Authorization"]))
        status, headers, body = self.server.answer(len(self.server.asked))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


def identity(number, life_s=900):
    at = datetime.fromtimestamp(time.time() + life_s, timezone.utc)
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return 201, {}, {"token": f"token-{number}", "jti": f"jti-{number}", "expires_at": text}


class Engine(unittest.TestCase):
    def setUp(self):
        self.engine = load_engine()
        self.folder = tempfile.mkdtemp(prefix="colonnade-identity-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeApi)
        self.api.asked, self.api.answer = [], identity
        threading.Thread(target=self.api.serve_forever, daemon=True).start()
        self.addCleanup(self.api.server_close)
        self.addCleanup(self.api.shutdown)
        self.file = os.path.join(self.folder, "identity")
        self.once = os.path.join(self.folder, "once")
        self.options = {
            "identity_file": self.file,
            "enrol_token_file": self.once,
            "api_url": f"http://127.0.0.1:{self.api.server_port}",
        }
        self.put(self.once, ONCE)

    def put(self, path, text, mode=0o600):
        pathlib.Path(path).write_text(text)
        os.chmod(path, mode)

    def kept(self):
        return json.loads(pathlib.Path(self.file).read_text())

    def refuse(self, part, **changes):
        with self.assertRaises(self.engine.IdentityError) as caught:
            self.engine.keep({**self.options, **changes})
        self.assertIn(part, str(caught.exception))
        for secret in (ONCE, "token-1"):
            self.assertNotIn(secret, str(caught.exception))

    def test_it_enrols_once_keeps_the_file_to_itself_and_forgets_the_one_time_token(self):
        os.umask(0)
        self.addCleanup(os.umask, 0o022)
        self.assertEqual(self.engine.keep(self.options), "enrolled")
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        self.assertEqual(self.kept()["token"], "token-1")
        self.assertFalse(os.path.exists(self.once))
        self.assertEqual(self.engine.keep(self.options), "fresh")
        self.assertEqual(self.api.asked, [("/identity/enrol", f"Bearer {ONCE}")])
        self.assertEqual(sorted(os.listdir(self.folder)), ["identity", "identity.lock"])

    def test_it_renews_with_the_identity_itself_well_before_the_end(self):
        self.engine.keep(self.options)
        later = lambda: time.time() + 500  # noqa: E731
        self.assertEqual(self.engine.keep(self.options, now=later), "renewed")
        self.assertEqual(self.api.asked[1], ("/identity/renew", "Bearer token-1"))
        self.assertEqual(self.kept()["token"], "token-2")

    def test_a_failure_leaves_the_identity_there_is(self):
        self.engine.keep(self.options)
        before = self.kept()
        for answer in (
            lambda _: (503, {}, {"code": "kms_unavailable"}),
            lambda _: (201, {}, {"token": "token-9"}),
            lambda _: (302, {"Location": "http://127.0.0.1:1/"}, {}),
        ):
            self.api.answer = answer
            with self.assertRaises(self.engine.IdentityError):
                self.engine.keep(self.options, now=lambda: time.time() + 500)
            self.assertEqual(self.kept(), before)
        self.api.shutdown()
        self.api.server_close()
        with self.assertRaises(self.engine.IdentityError):
            self.engine.keep(self.options, now=lambda: time.time() + 500)
        self.assertEqual(self.kept(), before)

    def test_a_one_time_token_that_is_refused_stays_and_the_code_is_said(self):
        self.api.answer = lambda _: (401, {}, {"code": "unauthorized"})
        self.refuse("401 (unauthorized)")
        self.assertTrue(os.path.exists(self.once))

    def test_an_identity_that_has_expired_needs_a_new_one_time_token(self):
        self.engine.keep(self.options)
        self.put(self.file, json.dumps({**self.kept(), "expires_at": time.time() - 1}))
        self.refuse("has expired")
        self.put(self.once, ONCE)
        self.assertEqual(self.engine.keep(self.options), "enrolled")

    def test_files_that_others_may_read_links_and_other_content_are_refused(self):
        self.put(self.once, ONCE, 0o640)
        self.refuse("option enrol_token_file is open to others")
        os.chmod(self.once, 0o600)
        self.engine.keep(self.options)
        os.chmod(self.file, 0o644)
        self.refuse("option identity_file is open to others")
        self.put(self.file, "{}")
        self.refuse("not one of this engine")
        os.rename(self.file, self.file + ".real")
        os.symlink(self.file + ".real", self.file)
        self.refuse("cannot be read")

    def test_the_token_goes_over_https_or_to_this_host_alone(self):
        self.refuse("must be https", api_url="http://colonnade.example")
        self.assertEqual(self.api.asked, [])

    def test_of_two_engines_one_does_it(self):
        with self.engine._locked(self.file) as mine:
            self.assertTrue(mine)
            self.assertEqual(self.engine.keep(self.options), "another")
        self.assertEqual(self.engine.keep(self.options), "enrolled")


class Pillar(ModuleCase):
    def put(self, content, mode=0o600):
        path = pathlib.Path(self.cachedir, "identity")
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.chmod(mode)
        return str(path)

    def test_the_identity_goes_to_the_bridge_and_an_expired_one_falls_back_to_the_masters_token(self):
        with FakeMerger(self.redis.connection(), MASTER, lambda *_: {}) as merger:
            path = self.put({"token": "of-the-identity", "issued_at": 0, "expires_at": time.time() + 60})
            self.compile(token=None, identity_file=path)
            self.assertEqual(merger.requests[-1][1]["token"], "of-the-identity")
            self.put({"token": "of-the-identity", "issued_at": 0, "expires_at": time.time() - 1})
            self.compile(identity_file=path)
            self.assertEqual(merger.requests[-1][1]["token"], TOKEN)
        self.assertIn("has expired", self.logged())
        self.assertNotIn("of-the-identity", self.logged())

    def test_without_either_and_from_an_open_file_nothing_is_asked(self):
        path = self.put({"token": "t", "issued_at": 0, "expires_at": time.time() - 1})
        self.refuse("COLONNADE_MISCONFIGURED", token=None, identity_file=path)
        self.refuse("COLONNADE_MISCONFIGURED", token=None, identity_file=path + "-nowhere")
        self.refuse("COLONNADE_MISCONFIGURED", identity_file=self.put("no JSON"))
        self.refuse("COLONNADE_MISCONFIGURED", identity_file=self.put({"token": "t", "expires_at": 9e9}, 0o644))
