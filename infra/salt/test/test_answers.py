"""What a merger answers, and what becomes of it."""

import json
import unittest

from fake_merger import FakeMerger
from support import MASTER, TOKEN, ModuleCase, load_module

MERGER_CODES = (
    "bad_request unauthorized forbidden unknown_master unknown_minion overloaded expired too_large "
    "unavailable kms_unavailable kms_refused internal"
).split()


class Answers(ModuleCase):
    def merger(self, behave):
        merger = FakeMerger(self.redis.connection(), MASTER, behave)
        self.addCleanup(merger.__exit__)
        return merger.__enter__()

    def test_success_carries_the_pillar_and_the_marker(self):
        self.merger(lambda request, entry: {"role": "web"})
        answer = self.compile()
        self.assertEqual(answer, {"role": "web", "colonnade": {"bridge": "ok", "clock": 42, "master": MASTER}})

    def test_a_minion_without_pillars_still_gets_the_marker(self):
        self.merger(lambda request, entry: {})
        self.assertEqual(list(self.compile()), ["colonnade"])

    def test_values_keep_their_kinds(self):
        pillar = {"i": 2**63 - 1, "low": -(2**63), "f": 1.0, "t": "я\u2028\U0001f600", "n": None, "b": [True, {}]}
        self.merger(lambda request, entry: pillar)
        answer = self.compile()
        answer.pop("colonnade")
        self.assertEqual(answer, pillar)
        self.assertIs(type(answer["f"]), float)
        self.assertIs(type(answer["i"]), int)

    def test_the_request_is_what_the_bridge_expects(self):
        merger = self.merger(lambda request, entry: {})
        self.compile("db-1")
        request = merger.requests[0][1]
        ttl = request.pop("ttl_ms")
        self.assertEqual(
            request,
            {
                "event": "master_get_pillar_data",
                "master": MASTER,
                "minion_id": "db-1",
                "pillarenv": "auto",
                "token": TOKEN,
                "v": 1,
            },
        )
        self.assertTrue(100 <= ttl <= 1000, ttl)

    def test_the_request_is_canonical_json(self):
        module = load_module()
        conf = {"master": MASTER, "token": TOKEN}
        data = module._encode_request(conf, "я-1", "base", 900)
        again = json.dumps(json.loads(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        self.assertEqual(data, again)

    def test_pillarenv_of_the_minion_goes_through_verbatim(self):
        merger = self.merger(lambda request, entry: {})
        self.compile(opts={"pillarenv": "minion_id:db-1;master:m1, base"})
        self.compile(pillarenv="base")
        self.compile()
        self.assertEqual(
            [request["pillarenv"] for _, request in merger.requests],
            ["minion_id:db-1;master:m1, base", "base", "auto"],
        )

    def test_a_pillarenv_that_is_no_text_is_refused(self):
        self.merger(lambda request, entry: {})
        self.refuse("COLONNADE_BAD_REQUEST", opts={"pillarenv": ["base"]})

    def test_an_oversized_request_is_refused_before_it_is_sent(self):
        merger = self.merger(lambda request, entry: {})
        self.refuse("COLONNADE_BAD_REQUEST", opts={"pillarenv": "e" * 17_000})
        self.assertEqual(merger.requests, [])

    def test_a_pillar_named_like_the_marker_does_not_fake_it(self):
        self.merger(lambda request, entry: {"colonnade": {"bridge": "no"}})
        self.assertEqual(self.compile()["colonnade"]["bridge"], "ok")
        self.assertIn("hidden by the bridge's marker", self.logged())

    def test_every_code_of_a_merger_is_told_as_a_fixed_text(self):
        for code in MERGER_CODES:
            with self.subTest(code):
                with FakeMerger(self.redis.connection(), MASTER, lambda request, entry, code=code: {"$error": code}):
                    self.refuse(f"COLONNADE_{code.upper()}")
                self.assertIn("it was refused", self.logged())

    def test_what_is_no_reply_to_this_request_is_refused(self):
        def good(entry):
            return {"clock": 1, "id": entry, "ok": True, "pillar": {}, "v": 1}

        replies = {
            "another's id": lambda entry: json.dumps({**good(entry), "id": "1-1"}),
            "no id": lambda entry: json.dumps({**good(entry), "id": None}),
            "another version": lambda entry: json.dumps({**good(entry), "v": 2}),
            "not JSON": lambda entry: "{",
            "not an object": lambda entry: "[]",
            "pillar missing": lambda entry: json.dumps({"clock": 1, "id": entry, "ok": True, "v": 1}),
            "pillar a list": lambda entry: json.dumps({**good(entry), "pillar": []}),
            "pillar null": lambda entry: json.dumps({**good(entry), "pillar": None}),
            "ok a number": lambda entry: json.dumps({**good(entry), "ok": 1}),
            "ok missing": lambda entry: json.dumps({"clock": 1, "id": entry, "pillar": {}, "v": 1}),
            "clock a flag": lambda entry: json.dumps({**good(entry), "clock": True}),
            "clock missing": lambda entry: json.dumps({"id": entry, "ok": True, "pillar": {}, "v": 1}),
            "NaN": lambda entry: json.dumps({**good(entry), "pillar": {"x": float("nan")}}),
            "_errors": lambda entry: json.dumps({**good(entry), "pillar": {"_errors": ["x"]}}),
            "unknown code": lambda entry: json.dumps(
                {"error": {"code": "weird", "message": "x"}, "id": entry, "ok": False, "v": 1}
            ),
            "error missing": lambda entry: json.dumps({"id": entry, "ok": False, "v": 1}),
            "too deep": lambda entry: json.dumps(good(entry)).replace("{}", "[" * 200_000 + "]" * 200_000),
        }
        for name, reply in replies.items():
            with self.subTest(name):
                with FakeMerger(self.redis.connection(), MASTER, lambda request, entry, reply=reply: reply(entry)):
                    self.refuse("COLONNADE_BAD_REPLY")

    def test_one_retry_with_a_new_id_where_it_can_help(self):
        answers = [{"$error": "unavailable"}, {"role": "web"}]
        merger = self.merger(lambda request, entry: answers.pop(0))
        self.assertEqual(self.compile()["role"], "web")
        ids = [entry for entry, _ in merger.requests]
        self.assertEqual(len(set(ids)), 2)

    def test_no_third_try_and_none_where_it_cannot_help(self):
        for code, tries in (("unavailable", 2), ("forbidden", 1), ("overloaded", 1), ("internal", 1)):
            with self.subTest(code):
                with FakeMerger(
                    self.redis.connection(), MASTER, lambda request, entry, code=code: {"$error": code}
                ) as merger:
                    self.refuse(f"COLONNADE_{code.upper()}")
                self.assertEqual(len(merger.requests), tries)


if __name__ == "__main__":
    unittest.main()
