package ceremony

import (
	"flag"
	"os"
)

// The circuit of openings has thousands of constraints, and a contribution thousands of bytes.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"make keys of openings, and begin the fuzzing with each second byte of a contribution, as .ci/run does")
