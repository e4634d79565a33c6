"""Runs one command in a pseudo-terminal and answers it as a person would.

Standard input: JSON {argv, env, cwd, columns, timeout_s, steps: [{expect, send}]}; `expect` is a regular expression
over what came since the last answer, or empty: typed without being asked. Standard output: JSON {output, code, missed}.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

job = json.load(sys.stdin)
pid, terminal = pty.fork()
if pid == 0:
    os.chdir(job["cwd"])
    os.execvpe(job["argv"][0], job["argv"], job["env"])

fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, job["columns"], 0, 0))
output, since = b"", b""
steps = list(job["steps"])
deadline = time.monotonic() + job["timeout_s"]
while True:
    while steps and steps[0]["expect"] == "":
        os.write(terminal, steps.pop(0)["send"].encode())
    left = deadline - time.monotonic()
    if left <= 0:
        os.kill(pid, signal.SIGKILL)
        break
    if not select.select([terminal], [], [], left)[0]:
        continue
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    output += part
    since += part
    if steps and re.search(steps[0]["expect"], since.decode("utf-8", "replace")):
        os.write(terminal, steps.pop(0)["send"].encode())
        since = b""

status = os.waitpid(pid, 0)[1]
code = os.waitstatus_to_exitcode(status)
json.dump({"output": output.decode("utf-8", "replace"), "code": code, "missed": len(steps)}, sys.stdout)
