"""Programs with word2vec.c's options for the tests."""

import sys

# it reports a speed where the environment variable SPEED says of what: "thread/", or "" for all of them
TRAINER = '''#!{python}
import os, sys
from gensim.models import Word2Vec

names, values = sys.argv[1::2], sys.argv[2::2]
given = dict(zip(names, values, strict=True))
fixed = [given.pop(name) for name in ("-cbow", "-hs", "-binary")]
assert fixed == ["0", "0", "0"], fixed
model = Word2Vec(
    corpus_file=given.pop("-train"), vector_size=int(given.pop("-size")), window=int(given.pop("-window")), sg=1,
    negative=int(given.pop("-negative")), sample=float(given.pop("-sample")), min_count=int(given.pop("-min-count")),
    workers=int(given.pop("-threads")), epochs=int(given.pop("-iter")),
)
model.wv.save_word2vec_format(given.pop("-output"), binary=False)
assert not given, given
print("Vocab size: 650")
for number in (1.5, 2000) if "SPEED" in os.environ else ():
    print(f"\\rAlpha: 0.01  Progress: 99.9%  Words/{{os.environ['SPEED']}}sec: {{number:.2f}}k  ", end="", flush=True)
'''


def write_trainer(path, source=TRAINER):
    """The path of a program with this source, made executable; {python} in it is this interpreter."""
    path.write_text(source.format(python=sys.executable))
    path.chmod(0o755)
    return path
