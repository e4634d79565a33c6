"""The breaker that Salt's workers share."""

import json
import os
import pathlib
import shutil
import sys
import time
import unittest

from fake_merger import FakeMerger
from support import MASTER, ModuleCase, free_port, wait_for

FAST = {"failures": 3, "cooldown_ms": 400}


class Breaker(ModuleCase):
    def setUp(self):
        super().setUp()
        # A port of its own each time: nobody answers there until a test wants it.
        self.port = free_port()

    def fail_times(self, times, **changes):
        for _ in range(times):
            self.refuse("COLONNADE_REDIS_UNAVAILABLE", port=self.port, breaker=FAST, **changes)

    def test_it_opens_after_failures_in_a_row_and_then_asks_nobody(self):
        self.fail_times(3)
        # That nobody is asked then, the requests of the next test show.
        self.refuse("COLONNADE_CIRCUIT_OPEN", port=self.port, breaker=FAST)

    def test_it_closes_when_the_bridge_answers_again(self):
        answers = [None, None, None]
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: answers.pop() if answers else {}) as m:
            for _ in range(3):
                self.refuse("COLONNADE_TIMEOUT", breaker=FAST, budget_ms=200)
            self.refuse("COLONNADE_CIRCUIT_OPEN", breaker=FAST)
            self.assertEqual(len(m.requests), 3)
            wait_for(self.answers, "the cool-down to end", 2)
            self.compile(breaker=FAST)
            self.assertEqual(self.breaker_file()["failures"], 0)

    def answers(self):
        try:
            self.compile(breaker=FAST)
        except Exception as error:
            self.assertEqual(str(error), "COLONNADE_CIRCUIT_OPEN")
            return False
        return True

    def breaker_file(self):
        (file,) = pathlib.Path(self.cachedir, "colonnade").glob("breaker-*.json")
        return json.loads(file.read_text())

    def test_a_failed_probe_keeps_it_open(self):
        self.fail_times(3)
        time.sleep(0.45)
        self.fail_times(1)
        self.refuse("COLONNADE_CIRCUIT_OPEN", port=self.port, breaker=FAST)

    def test_a_success_between_failures_starts_the_count_anew(self):
        def one_failure():
            with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: None):
                self.refuse("COLONNADE_TIMEOUT", breaker=FAST, budget_ms=200)

        for _ in range(3):
            one_failure()
            if self.breaker_file()["failures"] == 2:
                with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}):
                    self.compile(breaker=FAST)
        self.assertEqual(self.breaker_file()["failures"], 1)

    def test_a_refusal_is_an_answer(self):
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {"$error": "forbidden"}):
            for _ in range(5):
                self.refuse("COLONNADE_FORBIDDEN", breaker=FAST)

    def test_other_processes_see_it(self):
        self.fail_times(3)
        child = os.fork()
        if child == 0:
            sys.modules.pop("_colonnade_salt_state", None)
            try:
                self.refuse("COLONNADE_CIRCUIT_OPEN", port=self.port, breaker=FAST)
                os._exit(0)
            except BaseException:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_failures_of_several_processes_add_up(self):
        for _ in range(3):
            child = os.fork()
            if child == 0:
                try:
                    self.fail_times(1)
                    os._exit(0)
                except BaseException:
                    os._exit(1)
            os.waitpid(child, 0)
        self.refuse("COLONNADE_CIRCUIT_OPEN", port=self.port, breaker=FAST)

    def test_it_is_private_to_the_owner_and_holds_no_secret(self):
        self.fail_times(1)
        folder = pathlib.Path(self.cachedir, "colonnade")
        (file,) = folder.iterdir()
        self.assertEqual((folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777), (0o700, 0o600))
        self.assertEqual(sorted(json.loads(file.read_text())), ["at", "failures"])

    def test_without_a_cachedir_each_process_counts_for_itself(self):
        shutil.rmtree(self.cachedir)
        pathlib.Path(self.cachedir).touch()
        self.fail_times(3)
        self.refuse("COLONNADE_CIRCUIT_OPEN", port=self.port, breaker=FAST)
        os.unlink(self.cachedir)

    def test_garbage_or_a_state_from_before_a_reboot_does_not_keep_it_open(self):
        self.fail_times(3)
        (file,) = pathlib.Path(self.cachedir, "colonnade").iterdir()
        for text in ("garbage", "[]", "", json.dumps({"failures": 9, "at": time.monotonic() + 10_000})):
            file.write_text(text)
            self.fail_times(1)

    def test_a_link_in_its_place_is_not_followed(self):
        self.fail_times(1)
        (file,) = pathlib.Path(self.cachedir, "colonnade").iterdir()
        victim = pathlib.Path(self.cachedir, "victim")
        victim.write_text("keep")
        file.unlink()
        file.symlink_to(victim)
        self.fail_times(3)
        self.assertEqual(victim.read_text(), "keep")
        self.refuse("COLONNADE_CIRCUIT_OPEN", port=self.port, breaker=FAST)


if __name__ == "__main__":
    unittest.main()
