package transfer

import "flag"

// Without this flag rounds are played whose units take seconds.
var long = flag.Bool("long", false, "measure everything, and play rounds of long units, as .ci/run does")
