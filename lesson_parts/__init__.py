"""What one lesson needs besides its subject, such as drawing, taking turns and waiting: a file for one lesson each."""

import helpers  # noqa: F401  before TensorFlow, whose log it keeps quiet
