"""Runs the test modules named and prints one JSON line for each test: ``{"name", "outcome", "detail"}``."""

import json
import pathlib
import sys
import unittest


class LineResult(unittest.TestResult):
    def stopTest(self, test):
        super().stopTest(test)
        faults = [text for case, text in [*self.failures, *self.errors] if self._belongs(case, test)]
        skips = [reason for case, reason in self.skipped if self._belongs(case, test)]
        outcome = "failed" if faults else "skipped" if skips else "passed"
        self._report(test, outcome, "\n".join(faults or skips))

    def addError(self, test, err):
        super().addError(test, err)
        if not isinstance(test, unittest.TestCase):
            # A fault of a class's or module's set-up belongs to no test.
            self._report(test, "failed", self.errors[-1][1])

    def _belongs(self, case, test):
        return case is test or getattr(case, "test_case", None) is test

    def _report(self, test, outcome, detail):
        print(json.dumps({"name": str(test.id()), "outcome": outcome, "detail": detail}), flush=True)


sys.path.insert(0, str(pathlib.Path(__file__).parent))
unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]).run(LineResult())
