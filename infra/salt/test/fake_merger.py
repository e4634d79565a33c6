"""
A stand-in for the pillar-merger's side of the Redis bridge, for tests of Salt's side alone.

As a program it answers from a file: ``fake_merger.py --port 6379 --pillars pillars.json`` where the file maps a
minion's id to its pillar, or to ``{"$error": code}``. Ends on SIGTERM, or when its standard input closes.
"""

import argparse
import json
import os
import pathlib
import sys
import threading

import redis

# The functions themselves are the real ones: they are part of the wire.
FUNCTIONS = (
    pathlib.Path(__file__).parents[3] / "services" / "pillar-merger" / "src" / "bridge" / "bridge-functions.lua"
).read_text(encoding="utf-8")
ALIVE = "colonnade:bridge:alive"
GROUP = "mergers"


class FakeMerger:
    """
    Answers one master's requests with what ``behave(request, entry)`` returns: a pillar as a dict, a whole reply as
    text, an error as ``{"$error": code}``, or None for no reply at all.
    """

    def __init__(self, connection, master, behave):
        self.requests = []
        self._connection = connection
        self._master = master
        self._stream = f"colonnade:bridge:req:{master}"
        self._behave = behave
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._client = redis.Redis(**self._connection, decode_responses=True)
        self.announce()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join(5)
        try:
            self._client.delete(ALIVE)
        except redis.exceptions.RedisError:
            pass
        self._client.close()

    def announce(self):
        """What a merger does when it comes to a Redis: its functions, its group, the sign of life."""
        self._client.execute_command("FUNCTION", "LOAD", "REPLACE", FUNCTIONS)
        try:
            self._client.xgroup_create(self._stream, GROUP, "0", mkstream=True)
        except redis.exceptions.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._client.set(ALIVE, "1", px=5000)

    def _run(self):
        while not self._stopping.is_set():
            try:
                self._client.set(ALIVE, "1", px=5000)
                self._serve()
            except redis.exceptions.RedisError:
                if not self._stopping.wait(0.05):
                    self._come_back()

    def _come_back(self):
        try:
            self.announce()
        except redis.exceptions.RedisError:
            pass

    def _serve(self):
        found = self._client.xreadgroup(GROUP, "fake", {self._stream: ">"}, count=16, block=20)
        for _, entries in found or []:
            for entry, fields in entries:
                self._answer(entry, json.loads(fields["data"]))

    def _answer(self, entry, request):
        self.requests.append((entry, request))
        answer = self._behave(request, entry)
        if answer is None:
            return
        reply = answer if isinstance(answer, str) else make_reply(answer, entry)
        key = f"colonnade:bridge:rep:{self._master}:{entry}"
        self._client.execute_command(
            "FCALL", "colonnade_bridge_reply", 2, self._stream, key, GROUP, entry, 2000, 2000, reply
        )


def make_reply(answer, entry):
    """The reply's text for a pillar, or for ``{"$error": code}``."""
    if "$error" in answer:
        error = {"code": answer["$error"], "message": "it was refused"}
        reply = {"error": error, "id": entry, "ok": False, "v": 1}
    else:
        reply = {"clock": 42, "id": entry, "ok": True, "pillar": answer, "v": 1}
    return json.dumps(reply, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--master", default="m1")
    parser.add_argument("--pillars", required=True)
    options = parser.parse_args()

    def behave(request, _):
        with open(options.pillars, encoding="utf-8") as file:
            return json.load(file).get(request["minion_id"], {"$error": "unknown_minion"})

    connection = {
        "host": options.host,
        "port": options.port,
        "username": os.environ.get("FAKE_MERGER_USER"),
        "password": os.environ.get("FAKE_MERGER_PASSWORD"),
    }
    with FakeMerger(connection, options.master, behave):
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
