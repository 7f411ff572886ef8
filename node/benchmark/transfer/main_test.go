package transfer

import "flag"

// Without this flag rounds are played whose units take seconds.
var long = flag.Bool("long", false, "play rounds of long units with blocks of a second, as .ci/run does")
