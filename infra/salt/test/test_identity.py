"""The engine that keeps the identity, and the external pillar's reading of it; a pillar-api of the standard library."""

import base64
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


def fd_lives(fd):
    return os.path.islink(f"/proc/self/fd/{fd}")


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


def token(number, life_s=900, server_s=0):
    """As crypto-kms makes them, by the clock of a server that may be ahead or behind."""
    iat = int(time.time() + server_s)
    claims = {"iat": iat, "exp": iat + life_s, "jti": f"jti-{number}"}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"token.{payload}.{number}"


def identity(number, life_s=900, server_s=0):
    at = datetime.fromtimestamp(time.time() + server_s + life_s, timezone.utc)
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = {"token": token(number, life_s, server_s), "jti": f"jti-{number}", "expires_at": text}
    return 201, {}, body


def number_of(text):
    return text.rsplit(".", 1)[1]


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
        self.started = self.engine.read_clock()

    def put(self, path, text, mode=0o600):
        pathlib.Path(path).write_text(text)
        os.chmod(path, mode)

    def kept(self):
        return json.loads(pathlib.Path(self.file).read_text())

    def refuse(self, part, **changes):
        with self.assertRaises(self.engine.IdentityError) as caught:
            self.engine.keep({**self.options, **changes})
        self.assertIn(part, str(caught.exception))
        for secret in (ONCE, "token."):
            self.assertNotIn(secret, str(caught.exception))

    def at(self, boot_s=0, wall_s=None, boot_id="this"):
        """A clock so many seconds on; the wall clock goes with it unless it was set."""
        base = self.started
        wall = base.wall + (boot_s if wall_s is None else wall_s)
        return lambda: self.engine.Moment(wall, base.boot + boot_s, base.boot_id if boot_id == "this" else boot_id)

    def test_it_enrols_once_keeps_the_file_to_itself_and_forgets_the_one_time_token(self):
        os.umask(0)
        self.addCleanup(os.umask, 0o022)
        self.assertEqual(self.engine.keep(self.options), "enrolled")
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        self.assertEqual(number_of(self.kept()["token"]), "1")
        self.assertFalse(os.path.exists(self.once))
        self.assertEqual(self.engine.keep(self.options), "fresh")
        self.assertEqual(self.api.asked, [("/identity/enrol", f"Bearer {ONCE}")])
        self.assertEqual(sorted(os.listdir(self.folder)), ["identity", "identity.lock"])

    def test_it_renews_with_the_identity_itself_well_before_the_end(self):
        self.engine.keep(self.options)
        first = self.kept()["token"]
        self.assertEqual(self.engine.keep(self.options, self.at(500)), "renewed")
        self.assertEqual(self.api.asked[1], ("/identity/renew", f"Bearer {first}"))
        self.assertEqual(number_of(self.kept()["token"]), "2")

    def test_it_renews_by_the_length_of_the_token_whatever_the_clocks_of_server_and_host_say(self):
        for server_s in (-100_000, 100_000):
            with self.subTest(server_s=server_s):
                self.put(self.once, ONCE)
                self.api.answer = lambda number, ahead=server_s: identity(number, server_s=ahead)
                if os.path.exists(self.file):
                    os.unlink(self.file)
                self.assertEqual(self.engine.keep(self.options, self.at()), "enrolled")
                self.assertEqual(self.engine.keep(self.options, self.at(300)), "fresh")
                # Somebody sets the clock of the host, forward and back.
                for wall_s in (-100_000, 100_000):
                    self.assertEqual(self.engine.keep(self.options, self.at(300, wall_s)), "fresh")
                self.assertEqual(self.engine.keep(self.options, self.at(500, -100_000)), "renewed")

    def test_after_a_boot_the_wall_clock_counts_since_no_other_is_left(self):
        self.engine.keep(self.options, self.at())
        self.assertEqual(self.engine.keep(self.options, self.at(-50, 100, "next")), "fresh")
        self.assertEqual(self.engine.keep(self.options, self.at(-50, 500, "next")), "renewed")
        self.put(self.file, json.dumps({"token": "t", "issued_at": time.time(), "expires_at": time.time() + 900}))
        self.assertEqual(self.engine.keep(self.options), "fresh")

    def test_a_clock_that_went_back_makes_no_identity_fresh(self):
        self.engine.keep(self.options, self.at())
        # One that was put back to a moment before, and a host whose clock stands in the past until it is told the time.
        for clock in (self.at(-50), self.at(-60, -1_000_000_000, "next")):
            self.assertEqual(self.engine.keep(self.options, clock), "renewed")

    def test_a_failure_leaves_the_identity_there_is(self):
        self.engine.keep(self.options)
        before = self.kept()
        for answer in (
            lambda _: (503, {}, {"code": "kms_unavailable"}),
            lambda _: (201, {}, {"token": "token.e30.9"}),
            lambda _: (201, {}, {"token": token(9, 0)}),
            lambda _: (201, {}, {"token": token(9, 10**9)}),
            lambda _: (302, {"Location": "http://127.0.0.1:1/"}, {}),
        ):
            self.api.answer = answer
            with self.assertRaises(self.engine.IdentityError):
                self.engine.keep(self.options, self.at(500))
            self.assertEqual(self.kept(), before)
        self.api.shutdown()
        self.api.server_close()
        with self.assertRaises(self.engine.IdentityError):
            self.engine.keep(self.options, self.at(500))
        self.assertEqual(self.kept(), before)

    def test_a_one_time_token_that_is_refused_stays_and_the_code_is_said(self):
        self.api.answer = lambda _: (401, {}, {"code": "unauthorized"})
        self.refuse("401 (unauthorized)")
        self.assertTrue(os.path.exists(self.once))

    def test_an_identity_that_has_expired_needs_a_new_one_time_token(self):
        self.engine.keep(self.options)
        self.put(self.file, json.dumps({**self.kept(), "received_boot": self.started.boot - 901}))
        self.refuse("has expired")
        self.put(self.once, ONCE)
        self.assertEqual(self.engine.keep(self.options), "enrolled")

    def test_a_one_time_token_is_not_shown_when_the_identity_could_not_be_kept(self):
        write = self.engine.os.write

        def full(fd, data):
            raise OSError(28, "No space left on device")

        self.engine.os.write = full
        self.addCleanup(setattr, self.engine.os, "write", write)
        self.refuse("No space left on device; nothing was asked for")
        self.engine.os.write = write
        gone = os.path.join(self.folder, "no", "identity")
        self.refuse("No such file or directory; nothing was asked for", identity_file=gone)
        fstat = self.engine.os.fstat
        self.addCleanup(setattr, self.engine.os, "fstat", fstat)
        # As a file system answers that keeps no modes.
        self.engine.os.fstat = lambda fd: os.stat_result((0o100777, *fstat(fd)[1:])) if fd in self.made() else fstat(fd)
        self.refuse("keeps no mode 0600; nothing was asked for")
        self.engine.os.fstat = fstat
        self.assertEqual(self.api.asked, [])
        self.assertTrue(os.path.exists(self.once))
        self.assertEqual(sorted(os.listdir(self.folder)), ["identity.lock", "once"])
        self.assertEqual(self.engine.keep(self.options), "enrolled")

    def made(self):
        """Open files of this process that are to become an identity."""
        links = {int(fd): os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if fd_lives(fd)}
        return [fd for fd, path in links.items() if "/.identity-" in path]

    def test_a_used_token_that_cannot_be_removed_is_said_and_the_identity_kept(self):
        os.mkdir(os.path.join(self.folder, "ro"))
        once = os.path.join(self.folder, "ro", "once")
        self.put(once, ONCE)
        unlink = self.engine.os.unlink

        def refuse(path):
            if path == once:
                raise PermissionError(13, "Permission denied")
            unlink(path)

        self.engine.os.unlink = refuse
        self.addCleanup(setattr, self.engine.os, "unlink", unlink)
        self.refuse("enrolled, but the used token", enrol_token_file=once)
        self.assertEqual(self.engine.keep(self.options), "fresh")

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
            # Since it was received, by a clock that nobody sets; the other one may say what it likes.
            boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            now = time.clock_gettime(time.CLOCK_BOOTTIME)
            for received, wall, token in ((now - 10, -1000, "of-the-identity"), (now - 901, 1000, TOKEN)):
                known = {"boot_id": boot_id, "received_boot": received, "life": 900}
                self.put({"token": "of-the-identity", "issued_at": 0, "expires_at": time.time() + wall, **known})
                self.compile(identity_file=path)
                self.assertEqual(merger.requests[-1][1]["token"], token)
        self.assertIn("has expired", self.logged())
        self.assertNotIn("of-the-identity", self.logged())

    def test_without_either_and_from_an_open_file_nothing_is_asked(self):
        path = self.put({"token": "t", "issued_at": 0, "expires_at": time.time() - 1})
        self.refuse("COLONNADE_MISCONFIGURED", token=None, identity_file=path)
        self.refuse("COLONNADE_MISCONFIGURED", token=None, identity_file=path + "-nowhere")
        self.refuse("COLONNADE_MISCONFIGURED", identity_file=self.put("no JSON"))
        self.refuse("COLONNADE_MISCONFIGURED", identity_file=self.put({"token": "t", "expires_at": 9e9}, 0o644))
