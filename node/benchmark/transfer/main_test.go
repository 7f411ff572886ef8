package transfer

import (
	"flag"
	"os"
)

// Without this flag rounds are played whose units take seconds.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"measure everything, and play rounds of long units, as .ci/run does")
