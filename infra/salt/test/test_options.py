"""Options: what is refused, and that the log names it."""

import os
import pathlib
import unittest

from fake_merger import FakeMerger
from support import MASTER, MODULE, PASSWORD, TOKEN, ModuleCase, load_module


class Options(ModuleCase):
    def refuse_naming(self, part, opts=None, **changes):
        self.log.lines.clear()
        self.refuse("COLONNADE_MISCONFIGURED", opts=opts, **changes)
        self.assertIn(part, self.logged())

    def file(self, text, mode=0o600):
        path = pathlib.Path(self.cachedir, f"secret-{len(os.listdir(self.cachedir))}")
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def test_each_fault_is_named_in_the_log(self):
        faults = {
            "unknown option hots": {"hots": "redis"},
            "option master (the logical master's id) is missing": {"master": None},
            "option master has a value": {"master": "a:b"},
            "option port has": {"port": "6379"},
            "option budget_ms has": {"budget_ms": 0},
            "option max_queue has": {"max_queue": True},
            "option pillarenv has": {"pillarenv": ""},
            "option token_file (or token)": {"token": None},
            "must give the master's token": {"token": "two words"},
            "options token and token_file exclude": {"token_file": "/nowhere"},
            "option tls.cipher": {"tls": {"cipher": "x"}},
            "file of option tls.ca cannot be read": {"tls": {"ca": "/nowhere"}},
            "option tls.key needs tls.cert": {"tls": {"key": __file__}},
            "option sentinel.service is missing": {"sentinel": {"hosts": ["127.0.0.1:26379"]}},
            "option sentinel.hosts has": {"sentinel": {"hosts": ["127.0.0.1"], "service": "x"}},
            "option breaker.failures has": {"breaker": {"failures": 0}},
        }
        for part, changes in faults.items():
            with self.subTest(part):
                self.refuse_naming(part, **changes)

    def test_secret_files(self):
        without = {"password": None, "token": None}
        good = {"password_file": self.file(PASSWORD + "\n"), "token_file": self.file(TOKEN + "\n", 0o400)}
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}):
            self.compile(**without, **good)
        open_file = self.file(TOKEN, 0o640)
        self.refuse_naming("token_file is open to others", **without, **{**good, "token_file": open_file})
        self.refuse_naming("token_file is empty", **without, **{**good, "token_file": self.file("\n")})
        self.refuse_naming("password_file cannot be read", **without, **{**good, "password_file": "/nowhere"})

    def test_a_renewed_token_file_is_read_at_the_next_compile(self):
        path = self.file("first")
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}) as merger:
            self.compile(token=None, token_file=path)
            pathlib.Path(path).write_text("second")
            self.compile(token=None, token_file=path)
            self.assertEqual([request["token"] for _, request in merger.requests], ["first", "second"])

    def test_the_masters_own_option_is_shared_and_the_entry_wins(self):
        shared = {"colonnade": self.options(pillarenv="base", budget_ms=300)}
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}) as merger:
            module = load_module()
            module.__opts__ = {"cachedir": self.cachedir, **shared}
            # How Salt calls it for the entries `- colonnade:` and `- colonnade: {pillarenv: auto}`.
            module.ext_pillar("web-1", {}, None)
            module.ext_pillar("web-1", {}, pillarenv="auto")
            self.assertEqual([request["pillarenv"] for _, request in merger.requests], ["base", "auto"])

    def test_an_entry_that_is_no_mapping_is_refused(self):
        module = load_module()
        module.__opts__ = {"cachedir": self.cachedir}
        for arguments in (["redis.example"], [["a", "b"]]):
            with self.assertRaises(module.ColonnadeError) as caught:
                module.ext_pillar("web-1", {}, *arguments)
            self.assertEqual(str(caught.exception), "COLONNADE_MISCONFIGURED")

    def test_the_pillar_cache_is_refused_unless_accepted(self):
        self.refuse_naming("pillar_cache", opts={"pillar_cache": True})
        with FakeMerger(self.redis.connection(), MASTER, lambda request, entry: {}):
            self.compile(opts={"pillar_cache": True}, allow_pillar_cache=True)

    def test_the_readme_tells_every_option_and_every_code(self):
        readme = MODULE.parents[2].joinpath("README.md").read_text()
        module = load_module()
        options = [*module._OPTIONS, *module._TLS_OPTIONS, *module._SENTINEL_OPTIONS, *module._BREAKER_OPTIONS]
        own = ["misconfigured", "redis_unavailable", "no_merger", "timeout", "circuit_open", "bad_reply", "internal"]
        codes = [f"COLONNADE_{code.upper()}" for code in [*module.MERGER_CODES, *own]]
        self.assertEqual([name for name in [*options, *codes] if name not in readme], [])

    def test_on_demand_use_is_refused(self):
        self.refuse_naming("on_demand_ext_pillar", opts={"on_demand_ext_pillar": ["libvirt", "colonnade"]})

    def test_inline_secrets_are_refused_where_minions_see_the_masters_options(self):
        self.refuse_naming("pillar_opts", opts={"pillar_opts": True})


if __name__ == "__main__":
    unittest.main()
