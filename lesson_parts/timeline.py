"""Horovod's timeline as it stands in its file. For lessons 08 and 12, which read it in two ways."""

import json
from pathlib import Path


def timeline_events(path):
    """Return the events of a timeline, list of dict, in the order in which Horovod wrote them; it may lack its end."""
    text = Path(path).read_text().rstrip().rstrip("],")
    return json.loads(text + "]")
