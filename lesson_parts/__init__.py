"""What one lesson alone needs, or it and the one that shows it: drawing, taking turns, a definition shown before."""

import helpers  # noqa: F401  before TensorFlow, whose log it keeps quiet
