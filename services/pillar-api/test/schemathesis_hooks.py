"""Bodies that schemathesis cannot make up or read: streams of records, as imports take and exports give them."""

import json

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.media_types import YAML_MEDIA_TYPES

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(["collection", "master", "minion", "pillar", "estate", "nothing"])
NAMES = st.sampled_from(["web", "salt-west", "web-1.example", "motd", ""]) | st.text(max_size=8)
# Fields of all kinds of records, some of them in place and some not.
RECORDS = st.fixed_dictionaries(
    {"kind": KINDS},
    optional={
        **{name: NAMES for name in ("id", "name", "owner", "parent_id", "master", "minion_id", "collection_id")},
        "tgt_type": st.sampled_from(["root", "minion", "collection", "task"]),
        "collections": st.lists(NAMES, max_size=2),
        "is_secret": st.booleans(),
        "value": VALUES,
        "more": VALUES,
    },
)
PARTS = st.lists(RECORDS.map(json.dumps) | st.text(max_size=40), max_size=4)


def encode(separator):
    return lambda parts: separator.join(parts).encode("utf-8", "surrogatepass")


# JSON is YAML, so the records are the same; what else stands in between is not.
schemathesis.openapi.media_type("application/x-ndjson", PARTS.map(encode("\n")))
schemathesis.openapi.media_type("application/yaml", PARTS.map(encode("\n---\n")))


# All its types of YAML: the first one that is akin is used, and its own reader takes one document only.
@schemathesis.deserializer("application/x-ndjson", *YAML_MEDIA_TYPES)
def deserialize(ctx, response):
    """A text of UTF-8, as the document says; what stands in it other tests say."""
    return response.content.decode("utf-8")
