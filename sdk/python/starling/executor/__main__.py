"""`python3 -m starling.executor`, started by a worker."""

import sys

from .serve import main

sys.exit(main())
