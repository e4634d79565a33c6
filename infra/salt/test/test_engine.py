"""The engine that refreshes pillars, with a real Redis; Salt's side is a list of calls."""

import importlib.machinery
import json
import pathlib
import tempfile
import threading
import time
import types
import unittest

from support import MASTER, PASSWORD, ModuleCase, RedisServer, free_port, wait_for

ENGINE = pathlib.Path(__file__).parent.parent / "colonnade_salt" / "engines" / "colonnade.py"
STREAM = f"colonnade:bridge:refresh:{MASTER}"


class Engine(ModuleCase):
    def setUp(self):
        super().setUp()
        self.calls = []
        self.module = types.ModuleType("engine")
        self.module.__file__ = str(ENGINE)
        exec(importlib.machinery.SourceFileLoader("engine", str(ENGINE)).get_code("engine"), self.module.__dict__)
        self.module.__opts__ = self.opts()
        self.module._publish = lambda minions: self.calls.append(minions)
        self.module.log.addHandler(self.log)
        self.module.log.setLevel("DEBUG")
        self.module.log.propagate = False
        self.addCleanup(self.module.log.removeHandler, self.log)

    def opts(self, **changes):
        return {"cachedir": self.cachedir, "ext_pillar": [{"colonnade": self.options(budget_ms=200, **changes)}]}

    def add(self, *minions, stream=STREAM, **more):
        data = json.dumps({"generation": "g", "minions": list(minions), "v": 1})
        with self.redis.admin() as client:
            return client.xadd(stream, {"data": data}, **more)

    def turn(self, batch=100, splay_s=0, max_age_s=3600):
        self.module.turn(batch, splay_s, max_age_s)

    def test_minions_of_its_own_stream_are_called_once(self):
        self.add("web-1", "schön 2")
        self.add("web-1", "web-3")
        self.add("db-1", stream="colonnade:bridge:refresh:m2")
        self.turn()
        self.turn()
        self.assertEqual(self.calls, [["web-1", "schön 2", "web-3"]])
        self.add("web-1")
        self.turn()
        self.assertEqual(self.calls[1:], [["web-1"]])

    def test_batches_with_a_pause_between_them(self):
        pauses = []
        self.module.time = types.SimpleNamespace(sleep=pauses.append)
        self.add(*[f"m-{n}" for n in range(5)])
        self.turn(batch=2, splay_s=3)
        self.assertEqual(self.calls, [["m-0", "m-1"], ["m-2", "m-3"], ["m-4"]])
        self.assertEqual(len(pauses), 2)
        self.assertTrue(all(0 <= pause <= 3 for pause in pauses), pauses)

    def test_when_a_call_fails_all_are_made_again(self):
        self.add("a", "b", "c")
        work, fail = self.module._publish, [False, True]

        def publish(minions):
            if fail and fail.pop(0):
                raise RuntimeError("the master did not take the call")
            work(minions)

        self.module._publish = publish
        with self.assertRaises(RuntimeError):
            self.turn(batch=2)
        self.turn(batch=2)
        self.assertEqual(self.calls, [["a", "b"], ["a", "b"], ["c"]])

    def test_the_cursor_outlives_the_process(self):
        self.add("a")
        self.turn()
        cursor = next(pathlib.Path(self.cachedir, "colonnade").glob("refresh-*")).read_text()
        self.assertRegex(cursor, r"^\d+-\d+$")
        again = types.ModuleType("again")
        again.__dict__.update(self.module.__dict__)
        again.turn(100, 0, 3600)
        self.assertEqual(self.calls, [["a"]])

    def test_what_is_too_old_is_dropped_and_logged(self):
        self.add("old", id="1000-0")
        self.add("new")
        self.turn()
        self.assertEqual(self.calls, [["new"]])
        self.assertIn("1000-0 is too old", self.logged())

    def test_what_is_not_understood_is_left_out_and_logged(self):
        with self.redis.admin() as client:
            for data in ("", "[]", "{}", '{"minions":"web"}', '{"minions":[1]}', '{"minions":[""]}', "[" * 20_000):
                client.xadd(STREAM, {"data": data})
            client.xadd(STREAM, {"other": "x"})
            client.execute_command("XADD", STREAM, "*", "data", b"\xff")
        self.add("web-1")
        self.turn()
        self.assertEqual(self.calls, [["web-1"]])
        self.assertEqual(self.logged().count("is not understood"), 9)

    def test_a_stream_that_began_anew_behind_its_clock_is_read(self):
        self.add("a")
        self.turn()
        with self.redis.admin() as client:
            client.delete(STREAM)
        self.add("b", id=f"{int(time.time() * 1000) - 60_000}-0")
        self.turn()
        self.assertEqual(self.calls, [["a"], ["b"]])

    def test_a_broken_cursor_does_everything_again(self):
        self.add("a")
        self.turn()
        next(pathlib.Path(self.cachedir, "colonnade").glob("refresh-*")).write_text("rubbish\n")
        self.turn()
        self.assertEqual(self.calls, [["a"], ["a"]])

    def test_it_goes_on_when_redis_was_away(self):
        own = RedisServer(tempfile.mkdtemp(dir=self.folder), port=free_port()).start()
        self.addCleanup(own.stop)
        self.module.__opts__ = self.opts(port=own.port)
        self.module.FIRST_PAUSE_S = 0.05
        threading.Thread(target=self.module.start, daemon=True).start()
        own.stop()
        wait_for(lambda: "COLONNADE_REDIS_UNAVAILABLE" in self.logged(), "the fault in the log")
        own.start()
        with own.admin() as client:
            client.xadd(STREAM, {"data": '{"minions":["web-1"]}'})
        wait_for(lambda: self.calls == [["web-1"]], "the call")

    def test_wrong_options_are_told_and_end_nothing(self):
        class Ended(Exception):
            pass

        def end(_):
            raise Ended

        self.module.time = types.SimpleNamespace(sleep=end)
        for wrong in ({"batch": 0}, {"batch": True}, {"splay_ms": -1}, {"max_age_s": "1h"}):
            with self.assertRaises(Ended):
                self.module.start(**wrong)
            self.assertIn(f"option {next(iter(wrong))} must be", self.logged())

    def test_a_user_without_the_right_is_told_so(self):
        with self.redis.admin() as client:
            client.execute_command("ACL", "SETUSER", f"master-{MASTER}", "clearselectors")
        self.addCleanup(self.redis.set_user, MASTER, PASSWORD)
        with self.assertRaises(Exception) as caught:
            self.turn()
        self.assertEqual(str(caught.exception), "COLONNADE_MISCONFIGURED")


if __name__ == "__main__":
    unittest.main()
