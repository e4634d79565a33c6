"""What fails on the way: Redis, its functions, its rights, time, the library."""

import os
import socket
import subprocess
import sys
import threading
import time
import unittest

from fake_merger import FUNCTIONS, FakeMerger
from support import MASTER, MODULE, PASSWORD, TOKEN, ModuleCase, RedisServer, free_port, load_module, wait_for

# Far below the default budget, and far above what a busy machine adds to the one that is meant.
SOON_S = 3


class Failures(ModuleCase):
    def merger(self, behave=lambda request, entry: {"role": "web"}):
        merger = FakeMerger(self.redis.connection(), MASTER, behave)
        self.addCleanup(merger.__exit__)
        return merger.__enter__()

    def test_a_silent_merger_is_a_timeout_within_the_budget(self):
        self.merger(lambda request, entry: None)
        took = self.refuse("COLONNADE_TIMEOUT", budget_ms=400)
        self.assertTrue(0.35 < took < SOON_S, took)

    def test_no_live_merger(self):
        with self.redis.admin() as client:
            client.execute_command("FUNCTION", "LOAD", FUNCTIONS)
        took = self.refuse("COLONNADE_NO_MERGER")
        self.assertLess(took, SOON_S)

    def test_a_redis_that_no_merger_has_come_to(self):
        self.refuse("COLONNADE_NO_MERGER")
        self.assertIn("functions are not loaded", self.logged())

    def test_a_merger_that_comes_between_two_tries_is_met(self):
        timer = threading.Timer(0.05, self.merger)
        timer.start()
        self.addCleanup(timer.join)
        self.assertEqual(self.compile()["role"], "web")

    def test_a_full_stream_is_overloaded_at_once(self):
        self.merger(lambda request, entry: None)
        with self.redis.admin() as client:
            client.xadd(f"colonnade:bridge:req:{MASTER}", {"data": "{}"}, id="1-1")
        took = self.refuse("COLONNADE_OVERLOADED", max_queue=1)
        self.assertLess(took, SOON_S)

    def test_redis_is_down(self):
        took = self.refuse("COLONNADE_REDIS_UNAVAILABLE", port=free_port())
        self.assertLess(took, SOON_S)

    def test_redis_takes_the_connection_and_says_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            took = self.refuse("COLONNADE_TIMEOUT", port=server.getsockname()[1], budget_ms=300)
        self.assertLess(took, SOON_S)

    def test_a_redis_that_hangs_up_is_asked_twice_and_no_more(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            calls = []
            threading.Thread(target=_hang_up, args=(server, calls), daemon=True).start()
            self.refuse("COLONNADE_REDIS_UNAVAILABLE", port=server.getsockname()[1])
            self.assertEqual(len(calls), 2)

    def test_an_answer_that_drips_in_ends_at_the_budget(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=_drip, args=(server,), daemon=True).start()
            took = self.refuse("COLONNADE_TIMEOUT", port=server.getsockname()[1], budget_ms=500)
        self.assertLess(took, SOON_S)

    def test_a_name_that_resolves_slowly_ends_at_the_budget(self):
        def slow(*_args, **_kwargs):
            time.sleep(1.5)
            raise socket.gaierror("no such host")

        original = socket.getaddrinfo
        socket.getaddrinfo = slow
        self.addCleanup(setattr, socket, "getaddrinfo", original)
        took = self.refuse("COLONNADE_TIMEOUT", host="redis.example", budget_ms=300)
        self.assertLess(took, SOON_S)

    def test_what_is_told_and_logged_names_no_secret(self):
        self.refuse("COLONNADE_MISCONFIGURED", password="wrong-" + PASSWORD[::-1])
        self.assertIn("username and password", self.logged())
        self.assertNotIn(PASSWORD[::-1], self.logged())

    def test_another_masters_stream_is_out_of_reach(self):
        self.merger()
        self.refuse("COLONNADE_MISCONFIGURED", master="m2")
        self.assertIn("ACL", self.logged())

    def test_a_connection_lost_while_waiting_is_tried_once_more(self):
        lost = threading.Event()

        def behave(request, entry):
            if lost.is_set():
                return {"role": "web"}
            with self.redis.admin() as client:
                wait_for(lambda: any(one["cmd"] == "blpop" for one in client.client_list()), "the master to wait")
                client.execute_command("CLIENT", "KILL", "USER", f"master-{MASTER}")
            lost.set()
            return None

        merger = self.merger(behave)
        self.assertEqual(self.compile()["role"], "web")
        self.assertEqual(len(merger.requests), 2)

    def test_redis_restarts_between_two_compiles(self):
        self.merger()
        self.compile()
        self.redis.stop()
        self.refuse("COLONNADE_REDIS_UNAVAILABLE")
        self.redis.start()
        with self.redis.admin() as client:
            wait_for(lambda: client.exists("colonnade:bridge:alive"), "the merger to come back")
        self.assertEqual(self.compile()["role"], "web")

    def test_an_error_of_the_module_itself_tells_nothing(self):
        module = load_module()
        module.__opts__ = {"cachedir": self.cachedir}
        module._read_options = lambda *_: {}[PASSWORD]
        with self.assertRaises(module.ColonnadeError) as caught:
            module.ext_pillar("web-1", {})
        self.assertEqual(str(caught.exception), "COLONNADE_INTERNAL")


class WithoutTheLibrary(unittest.TestCase):
    """Salt skips a module that cannot be imported; so it must import, and refuse only when it is called."""

    def run_isolated(self, code):
        # -I -S: no site-packages, no environment: only the standard library.
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, str(MODULE)], capture_output=True, text=True, timeout=30
        )

    def test_it_loads_and_refuses_without_the_redis_package(self):
        done = self.run_isolated(
            "import runpy, sys\n"
            "try:\n"
            "    import redis\n"
            "    sys.exit('redis is there')\n"
            "except ImportError:\n"
            "    pass\n"
            "module = runpy.run_path(sys.argv[1])\n"
            "assert '__virtual__' not in module\n"
            "call = module['ext_pillar']\n"
            f"call.__globals__['__opts__'] = {{}}\n"
            f"options = dict(master='m1', token={TOKEN!r})\n"
            "try:\n"
            "    call('web-1', {}, **options)\n"
            "except Exception as error:\n"
            "    print(error)\n"
        )
        self.assertEqual(done.stdout.strip(), "COLONNADE_MISCONFIGURED", done.stderr)
        self.assertIn("redis is not installed", done.stderr)


class Forks(ModuleCase):
    def connections(self):
        with self.redis.admin() as client:
            return {one["id"] for one in client.client_list() if one["name"] == f"colonnade-{MASTER}"}

    def test_compiles_share_a_connection(self):
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}):
            self.compile()
            first = self.connections()
            for _ in range(5):
                self.compile()
            self.assertEqual(self.connections(), first)
            self.assertEqual(len(first), 1)

    def test_a_child_neither_uses_nor_breaks_its_parents_connection(self):
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {"id": request["minion_id"]}):
            self.compile()
            before = self.connections()
            children = [self.fork(f"child-{number}") for number in range(3)]
            for number in range(5):
                self.assertEqual(self.compile(f"parent-{number}")["id"], f"parent-{number}")
            for child in children:
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertEqual(self.connections(), before)

    def test_a_child_has_its_own_state(self):
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}):
            self.compile()
        module = load_module()
        self.assertEqual(len(module._process_state().pools), 1)
        child = os.fork()
        if child == 0:
            os._exit(len(module._process_state().pools))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(len(module._process_state().pools), 1)

    def fork(self, minion):
        pid = os.fork()
        if pid != 0:
            return pid
        try:
            same = all(self.compile(minion)["id"] == minion for _ in range(5))
            os._exit(0 if same else 1)
        except BaseException:
            os._exit(2)

    def test_a_changed_password_gets_a_new_connection(self):
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}):
            self.compile()
            self.redis.set_user(MASTER, "another-password")
            self.addCleanup(self.redis.set_user, MASTER, PASSWORD)
            self.compile(password="another-password")

    def test_a_dropped_idle_connection_is_not_noticed(self):
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}) as merger:
            self.compile()
            with self.redis.admin() as client:
                client.execute_command("CLIENT", "KILL", "USER", f"master-{MASTER}")
            self.compile()
            self.assertEqual(len(merger.requests), 2)


class OldRedis(ModuleCase):
    def test_a_redis_without_functions_is_named_in_the_log(self):
        old = RedisServer(self.folder, "--rename-command", "FCALL", "").start()
        self.addCleanup(old.stop)
        self.refuse("COLONNADE_MISCONFIGURED", port=old.port)
        self.assertIn("7.0 or later", self.logged())


def _hang_up(server, calls):
    """Reads one command of each caller and closes."""
    try:
        while True:
            connection, _ = server.accept()
            calls.append(connection.recv(1024))
            connection.close()
    except OSError:
        pass


def _drip(server):
    """Answers every command by one byte each tenth of a second, so that no single read ever times out."""
    connection, _ = server.accept()
    try:
        while True:
            connection.sendall(b"+")
            time.sleep(0.1)
    except OSError:
        pass


if __name__ == "__main__":
    unittest.main()
